// SimFaults: the faults of a simulation. A value. The same seed and faults give the same run.
#pragma once

#include <cstdint>
#include <vector>

namespace trestle {

// All sends and reductions of the rank take percent / 100 times as long.
struct SlowRank {
  int32_t rank = 0;
  uint64_t percent = 100;
};

// All sends of the rank in one dimension take percent / 100 times as long.
struct SlowLink {
  int32_t rank = 0;
  uint8_t dimension = 0;
  uint64_t percent = 100;
};

// From this time on, no message of the rank in this dimension arrives.
struct DeadLink {
  int32_t rank = 0;
  uint8_t dimension = 0;
  uint64_t at_ns = 0;
};

struct SimFaults {
  uint64_t seed = 0;
  uint64_t most_jitter_ns = 0;  // each arrival is delayed by 0 to this, at random
  std::vector<SlowRank> slow_ranks = {};
  std::vector<SlowLink> slow_links = {};
  std::vector<DeadLink> dead_links = {};
};

}  // namespace trestle
