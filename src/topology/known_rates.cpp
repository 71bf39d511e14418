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

// A rail whose rate its rank does not know.
struct UnknownRail {
  size_t rank = 0;
  std::string interface;  // "" : the rank knows none of its rails
};

std::optional<UnknownRail> first_unknown(size_t d, const std::vector<RankRails>& rails) {
  for (size_t r = 0; r < rails.size(); ++r) {
    if (d >= rails[r].size() || rails[r][d].empty()) return UnknownRail{r, ""};
    const auto unknown = std::ranges::find(rails[r][d], uint64_t{0}, &DimensionRail::bandwidth_mbps);
    if (unknown != rails[r][d].end()) return UnknownRail{r, unknown->interface};
  }
  return std::nullopt;
}

// The bandwidth of the rank that has the least. Every rank knows all its rails.
uint64_t least_mbps(size_t d, const Whereabouts& at, const std::vector<RankRails>& rails) {
  std::map<std::pair<int32_t, std::string_view>, uint64_t> users;  // by host and interface
  for (size_t r = 0; r < rails.size(); ++r) {
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

// What the user can do where a network may be a hundred times slower than assumed.
std::string advice(const UnknownRail& rail, const Dimension& dimension) {
  const std::string whose = "rank " + std::to_string(rail.rank) + (rail.interface.empty() ? "" : ", ") + rail.interface;
  const std::string example = (rail.interface.empty() ? "eth0" : rail.interface) + "@25g";
  return "is as fast as its rails, whose rates are not known (" + whose + "), so " +
         gbps_text(facts_of(dimension.transport).bandwidth_mbps) +
         " Gb/s are assumed; TRESTLE_RAILS can tell them, such as " + example +
         ", and TRESTLE_CALIBRATE=full measures them";
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
    topology.reason += "; dimension " + std::to_string(d + 1) + " ";
    if (const std::optional<UnknownRail> unknown = first_unknown(d, rails)) {
      topology.reason += advice(*unknown, dimension);
      continue;
    }
    dimension.bandwidth_mbps = least_mbps(d, at, rails);
    topology.reason += "has the " + gbps_text(dimension.bandwidth_mbps) + " Gb/s that its rails are known to carry";
  }
}

}  // namespace trestle
