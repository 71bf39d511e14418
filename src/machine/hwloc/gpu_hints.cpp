// Built if hwloc was found.
#include "machine/gpu/gpu_hints.h"

#include <cstdio>
#include <utility>

#include "machine/hwloc/topology.h"

namespace trestle {
namespace {

constexpr unsigned kNvidia = 0x10de;

// Limits what hwloc looks for to PCI devices. Devices of the operating system are left out: to find them, hwloc would
// start CUDA. The component `pci` is, too: it reads the registers of all devices, which wakes GPUs up, only to name
// them.
bool look_for_pci_devices(hwloc_topology_t topology) {
  return hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci") == 0 &&
         hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0;
}

OwnedTopology load_topology(const std::string& xml) {
  OwnedTopology topology = new_topology();
  hwloc_topology_t raw = topology.get();
  if (raw == nullptr || (!xml.empty() && hwloc_topology_set_xml(raw, xml.c_str()) != 0)) return nullptr;
  if (!look_for_pci_devices(raw) || hwloc_topology_load(raw) != 0) return nullptr;
  return xml.empty() && hwloc_topology_is_thissystem(raw) == 0 ? nullptr : std::move(topology);
}

PciHint hint_of(hwloc_topology_t topology, hwloc_obj_t device) {
  const auto& pci = device->attr->pcidev;
  char address[32];
  std::snprintf(address, sizeof address, "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.dev, pci.func);
  PciHint hint{address};
  const hwloc_obj_t parent = hwloc_get_non_io_ancestor_obj(topology, device);
  if (parent != nullptr && hwloc_bitmap_weight(parent->nodeset) == 1)
    hint.numa_node = hwloc_bitmap_first(parent->nodeset);
  return hint;
}

}  // namespace

std::vector<PciHint> hints_from_hwloc(const std::string& xml) {
  std::vector<PciHint> hints;
  const OwnedTopology topology = load_topology(xml);
  if (topology == nullptr) return hints;
  hwloc_obj_t at = nullptr;
  while ((at = hwloc_get_next_pcidev(topology.get(), at)) != nullptr) {
    if (at->attr->pcidev.vendor_id == kNvidia) hints.push_back(hint_of(topology.get(), at));
  }
  return hints;
}

}  // namespace trestle
