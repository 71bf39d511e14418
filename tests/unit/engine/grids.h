// Random topologies and schedules for the tests of the engine. Pure functions of the generator's state.
#pragma once

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "sched/schedule.h"
#include "support/grids.h"
#include "topology/topology.h"

namespace trestle {

inline Topology engine_grid(const std::vector<int32_t>& sizes) {
  return even_grid(sizes, {.bandwidth_mbps = 100'000, .latency_ns = 1000});
}

inline Topology random_grid(Rng& rng) {
  std::vector<int32_t> sizes;
  for (uint64_t d = 1 + rng.below(3); d > 0; --d) sizes.push_back(static_cast<int32_t>(2 + rng.below(4)));
  return engine_grid(sizes);
}

// Chunks of random sizes. Each goes over all dimensions in its own order: reduce-scatters, then all-gathers back.
inline Schedule random_schedule(const Topology& topology, uint64_t bytes, Rng& rng) {
  Schedule schedule;
  const uint64_t chunks = 1 + rng.below(6);
  for (uint64_t k = 0; k < chunks; ++k) {
    ChunkSchedule chunk;
    const uint64_t left = bytes - schedule.bytes;
    chunk.bytes = k + 1 == chunks ? left : rng.below(left + 1);
    schedule.bytes += chunk.bytes;
    std::vector<uint8_t> order;
    for (uint8_t d = 0; d < topology.dimensions.size(); ++d) {
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(rng.below(order.size() + 1)), d);
    }
    for (uint8_t d : order) chunk.phases.push_back({d, PhaseKind::kReduceScatter, 0});
    std::reverse(order.begin(), order.end());
    for (uint8_t d : order) chunk.phases.push_back({d, PhaseKind::kAllGather, 0});
    schedule.chunks.push_back(std::move(chunk));
  }
  return schedule;
}

}  // namespace trestle
