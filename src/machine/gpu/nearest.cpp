#include "machine/gpu/nearest.h"

#include <algorithm>
#include <tuple>

namespace trestle {
namespace {

bool nearer(const PciDistance& a, const PciDistance& b) {
  return std::tuple(a.distance, b.common) < std::tuple(b.distance, a.common);
}

// Without the device itself, which may have several functions.
size_t bridges_of(const PciPlace& place) {
  return place.path.empty() ? 0 : place.path.size() - 1;
}

}  // namespace

PciDistance distance_of(const PciPlace& gpu, const PciPlace& nic) {
  const size_t most = std::min(bridges_of(gpu), bridges_of(nic));
  size_t common = 0;
  while (common < most && gpu.path[common] == nic.path[common]) ++common;
  if (common > 1) return {NicDistance::kSwitch, common};
  if (common == 1) return {NicDistance::kRootPort, common};
  if (gpu.numa_node < 0 || nic.numa_node < 0) return {NicDistance::kUnknown, 0};
  return {gpu.numa_node == nic.numa_node ? NicDistance::kNode : NicDistance::kElsewhere, 0};
}

void find_nearest(const PciPlace& place, std::span<const NicPlace> nics, Gpu& gpu) {
  PciDistance least;
  for (const NicPlace& nic : nics) {
    const PciDistance its = distance_of(place, nic.place);
    if (gpu.nics.empty() || nearer(its, least)) {
      gpu.nics = {nic.name};
      least = its;
    } else if (!nearer(least, its)) {
      gpu.nics.push_back(nic.name);
    }
  }
  gpu.nic_distance = least.distance;
}

}  // namespace trestle
