// Local search. It changes a chunk's reduce-scatter order, all-gather order or size, or swaps the places of two chunks.
// It keeps a change that the simulation finds faster, or no slower than some steps ago: late acceptance hill climbing
// (Burke and Bykov, "The late acceptance hill-climbing heuristic", 2017), which needs no temperature and decides by
// integers. Deterministic: it is seeded, and its budget is a number of simulated phases, never a time. Pure, any
// thread.
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
  uint64_t phases = 0;       // budget of simulated phases: evaluations times phases of the operation
  uint64_t bound_ticks = 0;  // no schedule is faster; the search ends at this time
};

struct Found {
  std::vector<ChunkOrders> chunks;
  PriorityRule rule = nullptr;
  std::vector<std::vector<PhaseId>> sequences;  // per link; empty: the rule's
  uint64_t time_ticks = UINT64_MAX;
  uint64_t evaluations = 0;
};

// Returns the best schedule found, possibly `start`. `rule` is one of order_rules.h. Two thirds of the budget go to
// orders and sizes, with links that follow the rule. The rest also changes the sequences on the links, because in an
// optimum a link may idle on purpose, which no rule does.
Found search_schedules(const SearchRequest& request, std::vector<ChunkOrders> start, PriorityRule rule);

}  // namespace trestle
