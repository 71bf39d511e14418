// Local search: changes one chunk's reduce-scatter order, its all-gather order or its size, or two chunks' places, and
// keeps what the simulation says is faster (or no slower than some steps ago: late acceptance hill climbing, Burke and
// Bykov, "The late acceptance hill-climbing heuristic", 2017, which needs no temperature and decides by integers).
// Deterministic: seeded, and bounded by a count of simulated phases, never by a clock. Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/model/simulate.h"
#include "sched/policy/lp_split.h"

namespace trestle {

struct SearchRequest {
  const OrderLoads& loads;
  CostModel& model;
  ChunkGrain grain;
  uint32_t in_flight = 0;    // per link
  uint64_t phases = 0;       // to simulate: evaluations times phases of the operation
  uint64_t bound_ticks = 0;  // no schedule is faster: the search ends where it is reached
};

struct Found {
  std::vector<ChunkOrders> chunks;
  PriorityRule rule = nullptr;
  std::vector<std::vector<PhaseId>> sequences;  // per link; empty: those of the rule
  uint64_t time_ticks = UINT64_MAX;
  uint64_t evaluations = 0;
};

// The best of what it saw, `start` included; rules are those of order_rules.h. Two thirds of the budget go to orders
// and sizes, with links that follow a rule; then the sequences on the links are changed, too: an optimum may leave a
// link idle on purpose, which no rule does.
Found search_schedules(const SearchRequest& request, std::vector<ChunkOrders> start, PriorityRule rule);

}  // namespace trestle
