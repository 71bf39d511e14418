#include "machine/gpu/gpu.h"

#include <algorithm>

#include "machine/gpu/gpu_hints.h"
#include "machine/gpu/nearest.h"
#include "machine/gpu/nvlinks.h"
#include "machine/gpu/nvml_gpus.h"
#include "machine/gpu/pci_gpus.h"
#include "transport/rails/pci.h"

namespace trestle {
namespace {

Gpu& gpu_at(const KernelFiles& files, const std::string& pci, std::vector<Gpu>& gpus) {
  auto at = std::ranges::find(gpus, pci, &Gpu::pci);
  if (at == gpus.end()) {
    const auto behind = std::ranges::upper_bound(gpus, pci, pci_before, &Gpu::pci);
    at = gpus.insert(behind, gpu_from_files(files, pci));
  }
  return *at;
}

// NVML may know GPUs that the kernel's files do not show, for example where /sys is not mounted.
void add_told(const KernelFiles& files, const NvmlReading& reading, std::vector<Gpu>& gpus) {
  for (const NvmlGpu& told : reading.gpus) {
    Gpu& gpu = gpu_at(files, told.pci, gpus);
    if (!told.name.empty()) gpu.name = told.name;
    if (!told.uuid.empty()) gpu.uuid = told.uuid;
    gpu.memory_bytes = told.memory_bytes;
    if (told.links_unknown.empty()) gpu.nvlinks = static_cast<int>(told.links.size());
    gpu.nvlink_bps = told.link_bps;
  }
}

bool any_without_node(const std::vector<Gpu>& gpus) {
  return std::ranges::any_of(gpus, [](const Gpu& gpu) { return gpu.numa_node < 0; });
}

void add_hints(const std::vector<PciHint>& hints, std::vector<Gpu>& gpus) {
  for (Gpu& gpu : gpus) {
    const auto hint = std::ranges::find(hints, gpu.pci, &PciHint::pci);
    if (hint != hints.end() && gpu.numa_node < 0) gpu.numa_node = hint->numa_node;
  }
}

// One sentence for all GPUs whose NVLinks are unknown for the same reason.
class LinkNotes {
 public:
  void add(const std::string& pci, const std::string& why) {
    const auto at = std::ranges::find(reasons_, why, &Reason::why);
    if (at == reasons_.end())
      reasons_.push_back({why, pci});
    else
      at->gpus += ", " + pci;
  }
  void move_to(std::vector<std::string>& notes) const {
    for (const Reason& one : reasons_) notes.push_back("NVLinks of " + one.gpus + " unknown: " + one.why);
  }

 private:
  struct Reason {
    std::string why;
    std::string gpus;
  };
  std::vector<Reason> reasons_;
};

std::vector<std::string> notes_of(const std::vector<Gpu>& gpus, const NvmlReading& reading) {
  std::vector<std::string> notes;
  if (!reading.failure.empty()) return {"NVLinks unknown: " + reading.failure};
  LinkNotes unknown;
  for (const Gpu& gpu : gpus) {
    const auto told = std::ranges::find(reading.gpus, gpu.pci, &NvmlGpu::pci);
    if (told == reading.gpus.end())
      unknown.add(gpu.pci, "not among the GPUs that NVML shows to this process");
    else if (!told->links_unknown.empty())
      unknown.add(gpu.pci, told->links_unknown);
  }
  unknown.move_to(notes);
  notes.insert(notes.end(), reading.notes.begin(), reading.notes.end());
  return notes;
}

std::vector<NicPlace> places_of(const KernelFiles& files, std::span<const HostInterface> interfaces, int only_node) {
  std::vector<NicPlace> places;
  for (const HostInterface& one : interfaces) {
    if (one.facts.pci.empty()) continue;
    const int node = one.facts.numa_node < 0 ? only_node : one.facts.numa_node;
    places.push_back({one.name, {pci_path(files.sysfs + "/bus/pci/devices/" + one.facts.pci), node}});
  }
  return places;
}

void find_nearest_of_all(const KernelFiles& files, std::span<const HostInterface> interfaces,
                         std::span<const LayoutNode> nodes, std::vector<Gpu>& gpus) {
  // On a machine with one node, the kernel often does not name the node of a device.
  const int only_node = nodes.size() == 1 ? nodes.front().number : -1;
  const std::vector<NicPlace> nics = places_of(files, interfaces, only_node);
  for (Gpu& gpu : gpus) {
    if (gpu.numa_node < 0) gpu.numa_node = only_node;
    find_nearest({pci_path(files.sysfs + "/bus/pci/devices/" + gpu.pci), gpu.numa_node}, nics, gpu);
  }
}

}  // namespace

HostGpus read_gpus(const KernelFiles& files, const std::string& nvml, std::span<const HostInterface> interfaces,
                   std::span<const LayoutNode> nodes) {
  HostGpus host;
  host.list = gpus_from_files(files);
  NvmlReading reading;
  if (nvml.empty())
    reading.failure = "NVML was not asked";
  else
    reading = read_nvml(nvml);
  add_told(files, reading, host.list);
  if (host.list.empty()) {
    host.notes = reading.notes;
    return host;
  }
  if (files == KernelFiles{} && any_without_node(host.list)) add_hints(hints_from_hwloc(), host.list);
  for (Gpu& gpu : host.list) {
    if (gpu.name.empty()) gpu.name = numeric_name(files, gpu.pci);
  }
  host.links = links_between(host.list, reading);
  host.notes = notes_of(host.list, reading);
  find_nearest_of_all(files, interfaces, nodes, host.list);
  return host;
}

}  // namespace trestle
