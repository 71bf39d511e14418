// The orders of phases that Themis' Algorithm 1 gives the chunks, and its loads. plan_themis (sched/policy/policies.h)
// simulates these orders. For tests, and for searches that start there. Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/policy/policies.h"

namespace trestle {

struct ThemisLoads {
  std::vector<uint8_t> dimensions;  // as in the request
  std::vector<uint64_t> ticks;      // per entry of dimensions
};

struct ThemisPlan {
  std::vector<ChunkSchedule> chunks;  // of the proposed sizes
  std::vector<bool> fallback;         // per chunk: it took the baseline's order, because the loads were balanced
  ThemisLoads loads;                  // after the last chunk
};

ThemisPlan themis_chunks(PolicyRequest& request);

}  // namespace trestle
