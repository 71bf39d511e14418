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

// What happens to a rail of a dimension, for all ranks at once; as `scripts/lab rail` does it.
enum class SimRailChange : uint8_t {
  kDown,  // the interface: both ends see it
  kUp,
  kDrop,  // everything is lost, and no end sees it
  kPass,
  kRate,  // in parts per million of the rail's own
};

struct SimRailFault {
  uint8_t dimension = 0;
  uint8_t rail = 0;  // as SimLink::rails
  SimRailChange change = SimRailChange::kDown;
  uint64_t at_ns = 0;
  uint64_t rate_ppm = 0;  // kRate
};

struct SimFaults {
  uint64_t seed = 0;
  uint64_t most_jitter_ns = 0;  // each arrival is delayed by 0 to this, at random
  std::vector<SlowRank> slow_ranks = {};
  std::vector<SlowLink> slow_links = {};
  std::vector<DeadLink> dead_links = {};
  std::vector<SimRailFault> rails = {};
  int64_t rail_silence_ns = 3'000'000'000;  // after which a rail that loses everything counts as lost
};

}  // namespace trestle
