// The rails that two ranks have in common, from what both have published. Both compute the same.
//
// A pure function, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/rails/published.h"

namespace trestle {

struct RailPair {
  size_t mine = 0;  // places in the published lists
  size_t theirs = 0;
  uint64_t rate_bps = 0;  // the lesser of those that are known; 0: neither is
  bool operator==(const RailPair&) const = default;
};

struct UnpairedRail {
  bool is_mine = false;
  size_t place = 0;    // in that rank's list
  std::string reason;  // "rank 1 (b) has no rail in 10.77.21.0/24"
};

struct RailPairs {
  std::vector<RailPair> pairs;  // at least one; in the order of their fabrics, which both ranks compute alike
  std::vector<UnpairedRail> unpaired;
};

// One end: "rank 1 (b)" and its list, which is not empty.
struct RailOwner {
  std::string name;
  const std::vector<PublishedRail>& rails;
};

// Rails pair if they are on the same fabric. A rank with a single rail pairs with any rank that has a single one of the
// same family, whatever the fabrics: there is no choice to agree on, and a router may join the two.
// kInvalidUsage, with both names and what each has: there is no pair.
Result<RailPairs> pair_rails(const RailOwner& mine, const RailOwner& theirs);

// Both lists are of one host, within which all rails lead over the same memory. A host's addresses are those of its
// interfaces, which both ranks may have chosen from. One address in common is not enough, since some interfaces have
// the same one on every host.
bool are_of_one_host(const std::vector<PublishedRail>& mine, const std::vector<PublishedRail>& theirs);

}  // namespace trestle
