#include "transport/rails/pairing.h"

#include <algorithm>

namespace trestle {
namespace {

uint64_t lesser_known(uint64_t a, uint64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

std::string inventory(const RailOwner& owner) {
  std::string list;
  for (const PublishedRail& rail : owner.rails)
    list += (list.empty() ? "" : ", ") + format_host(rail.address) + " in " + rail.fabric.text();
  return owner.name + " has " + (list.empty() ? "none" : list);
}

void add_unpaired(const RailOwner& owner, const RailOwner& other, bool is_mine, const std::vector<bool>& paired,
                  RailPairs& result) {
  for (size_t i = 0; i < owner.rails.size(); ++i) {
    if (!paired[i])
      result.unpaired.push_back({is_mine, i, other.name + " has no rail in " + owner.rails[i].fabric.text()});
  }
}

bool are_only_ones(const RailOwner& mine, const RailOwner& theirs) {
  return mine.rails.size() == 1 && theirs.rails.size() == 1 &&
         mine.rails[0].address.family() == theirs.rails[0].address.family();
}

}  // namespace

Result<RailPairs> pair_rails(const RailOwner& mine, const RailOwner& theirs) {
  RailPairs result;
  std::vector<bool> mine_paired(mine.rails.size());
  std::vector<bool> theirs_paired(theirs.rails.size());
  const bool only_ones = are_only_ones(mine, theirs);
  for (size_t i = 0; i < mine.rails.size(); ++i) {
    for (size_t j = 0; j < theirs.rails.size(); ++j) {
      const Fabric& fabric = mine.rails[i].fabric;
      if (!only_ones && !(fabric.is_known() && fabric == theirs.rails[j].fabric)) continue;
      result.pairs.push_back({i, j, lesser_known(mine.rails[i].rate_bps, theirs.rails[j].rate_bps)});
      mine_paired[i] = theirs_paired[j] = true;
      break;
    }
  }
  if (result.pairs.empty())
    return Error{Code::kInvalidUsage, mine.name + " and " + theirs.name +
                                          " have no rail in common: " + inventory(mine) + "; " + inventory(theirs)};
  std::ranges::sort(result.pairs, {}, [&](const RailPair& pair) { return mine.rails[pair.mine].fabric; });
  add_unpaired(mine, theirs, true, mine_paired, result);
  add_unpaired(theirs, mine, false, theirs_paired, result);
  return result;
}

bool are_of_one_host(const std::vector<PublishedRail>& mine, const std::vector<PublishedRail>& theirs) {
  const auto common = std::ranges::count_if(mine, [&](const PublishedRail& one) {
    return std::ranges::any_of(theirs,
                               [&](const PublishedRail& other) { return HostAddress(one.address) == other.address; });
  });
  return static_cast<size_t>(common) == std::min(mine.size(), theirs.size());
}

}  // namespace trestle
