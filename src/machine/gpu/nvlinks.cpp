#include "machine/gpu/nvlinks.h"

#include <algorithm>

namespace trestle {
namespace {

const NvmlGpu* told_of(const NvmlReading& reading, const std::string& pci) {
  const auto at = std::ranges::find(reading.gpus, pci, &NvmlGpu::pci);
  return at == reading.gpus.end() ? nullptr : &*at;
}

int links_to(const NvmlGpu& gpu, const std::string& pci) {
  return static_cast<int>(std::ranges::count_if(
      gpu.links, [&](const NvmlLink& link) { return !link.to_switch && link.remote_pci == pci; }));
}

int links_to_switches(const NvmlGpu& gpu) {
  return static_cast<int>(std::ranges::count_if(gpu.links, &NvmlLink::to_switch));
}

// Whether it is known where all of its links lead that are up.
bool links_known(const NvmlGpu& gpu) {
  return gpu.links_unknown.empty() && std::ranges::all_of(gpu.links, [](const NvmlLink& link) {
           return link.to_switch || !link.remote_pci.empty();
         });
}

// No link: nvlinks is 0.
GpuLink link_of(const NvmlGpu& a, const NvmlGpu& b) {
  GpuLink link{.a = a.pci, .b = b.pci};
  link.nvlinks = std::max(links_to(a, b.pci), links_to(b, a.pci));
  if (link.nvlinks > 0) {
    // A lost end reports no speed, so the other end's counts.
    const uint64_t each_bps =
        a.link_bps == 0 || b.link_bps == 0 ? a.link_bps + b.link_bps : std::min(a.link_bps, b.link_bps);
    link.rate_bps = static_cast<uint64_t>(link.nvlinks) * each_bps;
    return link;
  }
  if (std::ranges::find(a.cut_off, b.pci) != a.cut_off.end()) return link;
  const int from_a = links_to_switches(a);
  const int from_b = links_to_switches(b);
  link.nvlinks = std::min(from_a, from_b);
  link.through_switch = link.nvlinks > 0;
  link.rate_bps = std::min(static_cast<uint64_t>(from_a) * a.link_bps, static_cast<uint64_t>(from_b) * b.link_bps);
  return link;
}

}  // namespace

std::vector<GpuLink> links_between(const std::vector<Gpu>& gpus, const NvmlReading& reading) {
  std::vector<GpuLink> links;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const NvmlGpu* a = told_of(reading, gpus[i].pci);
    for (size_t k = i + 1; a != nullptr && k < gpus.size(); ++k) {
      const NvmlGpu* b = told_of(reading, gpus[k].pci);
      if (b == nullptr) continue;
      const GpuLink link = link_of(*a, *b);
      if (link.nvlinks > 0) links.push_back(link);
    }
  }
  return links;
}

std::optional<GpuLink> link_between(const NvmlReading& reading, const std::string& a, const std::string& b) {
  const NvmlGpu* const one = told_of(reading, a);
  const NvmlGpu* const other = told_of(reading, b);
  if (one == nullptr || other == nullptr) return std::nullopt;
  const GpuLink link = link_of(*one, *other);
  const bool known = link.nvlinks > 0 || (links_known(*one) && links_known(*other));
  return known ? std::optional(link) : std::nullopt;
}

}  // namespace trestle
