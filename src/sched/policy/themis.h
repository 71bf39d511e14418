// The orders of phases that Themis' Algorithm 1 gives the chunks, and the loads it keeps. What plan_themis
// (sched/policy/policies.h) simulates, for those who want to look inside or to begin a search there. Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/policy/policies.h"

namespace trestle {

struct ThemisLoads {
  std::vector<uint8_t> dimensions;  // as the request's
  std::vector<uint64_t> ticks;      // per entry of dimensions
};

struct ThemisPlan {
  std::vector<ChunkSchedule> chunks;  // of the proposed sizes
  std::vector<bool> fallback;         // per chunk: took the baseline's order, because the loads were level
  ThemisLoads loads;                  // after the last chunk
};

ThemisPlan themis_chunks(PolicyRequest& request);

}  // namespace trestle
