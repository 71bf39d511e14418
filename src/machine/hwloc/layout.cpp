// Built if hwloc was found.
#include "machine/layout.h"

#include <algorithm>

#include "machine/hwloc/topology.h"

namespace trestle {
namespace {

Error unknown() {
  return Error{Code::kSystemError, "hwloc does not tell which processors this machine has"};
}

// Includes the processors that this process may not use.
Result<OwnedTopology> load_topology() {
  OwnedTopology topology = new_topology();
  hwloc_topology_t raw = topology.get();
  if (raw == nullptr) return unknown();
  if (hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0) return unknown();
  if (hwloc_topology_load(raw) != 0 || hwloc_topology_is_thissystem(raw) == 0) return unknown();
  return topology;
}

// hwloc gives an unknown number as the highest one.
int number_of(unsigned number) {
  return number == HWLOC_UNKNOWN_INDEX ? -1 : static_cast<int>(number);
}

LayoutProcessor read_processor(hwloc_topology_t topology, hwloc_obj_t at) {
  LayoutProcessor processor{.number = number_of(at->os_index)};
  const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, at);
  const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, at);
  if (core != nullptr) {
    processor.core = hwloc_bitmap_first(core->cpuset);
    processor.package = package == nullptr ? 0 : std::max(0, number_of(package->os_index));
  }
  processor.node = hwloc_bitmap_first(at->nodeset);
  return processor;
}

}  // namespace

Result<MachineLayout> layout_from_hwloc() {
  const OwnedTopology topology = TRY(load_topology());
  MachineLayout layout;
  layout.source = "hwloc " HWLOC_VERSION;
  hwloc_obj_t at = nullptr;
  while ((at = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, at)) != nullptr)
    layout.processors.push_back(read_processor(topology.get(), at));
  at = nullptr;
  while ((at = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, at)) != nullptr)
    layout.nodes.push_back({std::max(0, number_of(at->os_index)), at->attr->numanode.local_memory});
  std::ranges::sort(layout.nodes, {}, &LayoutNode::number);
  if (layout.processors.empty() || layout.nodes.empty()) return unknown();
  return layout;
}

}  // namespace trestle
