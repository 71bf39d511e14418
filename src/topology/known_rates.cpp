// The bandwidths of dimensions whose rails all ranks know.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "topology/internal.h"
#include "topology/topology.h"
#include "topology/whereabouts.h"

namespace trestle {
namespace {

bool knows_all(const RankRails& rails, size_t d) {
  if (d >= rails.size() || rails[d].empty()) return false;
  return std::ranges::none_of(rails[d], [](const DimensionRail& rail) { return rail.bandwidth_mbps == 0; });
}

// The bandwidth of the rank that has the least. Nothing if some rank does not know the rate of a rail.
std::optional<uint64_t> least_mbps(size_t d, const Whereabouts& at, const std::vector<RankRails>& rails) {
  std::map<std::pair<int32_t, std::string_view>, uint64_t> users;  // by host and interface
  for (size_t r = 0; r < rails.size(); ++r) {
    if (!knows_all(rails[r], d)) return std::nullopt;
    for (const DimensionRail& rail : rails[r][d]) ++users[{at.host[r], rail.interface}];
  }
  uint64_t least = UINT64_MAX;
  for (size_t r = 0; r < rails.size(); ++r) {
    uint64_t sum = 0;
    for (const DimensionRail& rail : rails[r][d]) sum += rail.bandwidth_mbps / users[{at.host[r], rail.interface}];
    least = std::min(least, sum);
  }
  return std::max<uint64_t>(least, 1);
}

bool may_be_known(const Dimension& dimension) {
  const bool has_kind = dimension.transport != TransportKind::kAuto;
  return dimension.bandwidth_mbps == 0 && has_kind && facts_of(dimension.transport).has_interfaces;
}

}  // namespace

void use_known_rates(const std::vector<RankPlace>& places, const std::vector<RankRails>& rails, Topology& topology) {
  CHECK(places.size() == rails.size(), "the rails of other ranks");
  const Whereabouts at = whereabouts(places);
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    Dimension& dimension = topology.dimensions[d];
    if (!may_be_known(dimension) || !all_apart(level_of(topology, d), at)) continue;
    const std::optional<uint64_t> known = least_mbps(d, at, rails);
    if (!known) continue;
    dimension.bandwidth_mbps = *known;
    topology.reason += "; dimension " + std::to_string(d + 1) + " has the " + gbps_text(*known) +
                       " Gb/s that its rails are known to carry";
  }
}

}  // namespace trestle
