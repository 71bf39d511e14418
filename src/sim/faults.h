// What goes wrong in a simulation. A value; the same seed and list give the same run.
#pragma once

#include <cstdint>
#include <vector>

namespace trestle {

// Everything that a rank sends and adds up takes percent / 100 times as long.
struct SlowRank {
  int32_t rank = 0;
  uint64_t percent = 100;
};

// The same for what a rank sends in one dimension.
struct SlowLink {
  int32_t rank = 0;
  uint8_t dimension = 0;
  uint64_t percent = 100;
};

// From this time on nothing that the rank sends in this dimension arrives.
struct DeadLink {
  int32_t rank = 0;
  uint8_t dimension = 0;
  uint64_t at_ns = 0;
};

struct SimFaults {
  uint64_t seed = 0;
  uint64_t most_jitter_ns = 0;  // each arrival is late by 0..this
  std::vector<SlowRank> slow_ranks = {};
  std::vector<SlowLink> slow_links = {};
  std::vector<DeadLink> dead_links = {};
};

}  // namespace trestle
