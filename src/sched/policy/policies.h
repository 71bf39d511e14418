// Policies decide how the chunks of a reduce-scatter, an all-gather or both go over the dimensions (TRESTLE_SCHED).
// This is the list of all, one row each. To add a policy, add its file, its row in policies.cpp and its name in the
// table of variables.
//
// A policy is a pure function, called by any thread: equal requests give equal schedules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sched/model/algorithm_choice.h"
#include "sched/model/planned_schedule.h"
#include "sched/policy/priority_rules.h"
#include "sched/schedule.h"

namespace trestle {

class SecondLevel;

struct PolicyRequest {
  AlgorithmChoice& algorithms;      // knows the topology and the costs
  std::vector<uint8_t> dimensions;  // used dimensions, innermost first; or kFlat alone
  bool reduce_scatter = false;
  bool all_gather = false;                 // both: the all-gather phases follow the reduce-scatter phases
  uint64_t bytes = 0;                      // as in Schedule::bytes; in the paper's model parts
  std::vector<uint64_t> chunk_bytes = {};  // proposed sizes: equal chunks
  uint32_t in_flight = 0;                  // per dimension; 0: the policy's choice
  // The rule by which links choose among waiting phases, if the policy leaves it open (TRESTLE_INTRA).
  PriorityRule intra = smallest_chunk_first;
  // Chunks of other sizes than those proposed are multiples of this, except the last.
  uint64_t granule = 1;
  uint64_t fewest_bytes = 1;  // per such chunk, if the total is enough for one
  // Limit for a policy that chooses the number of chunks; 0: it uses the proposed chunks.
  uint32_t most_chunks = 0;
  uint64_t to_beat_ticks = 0;             // predicted time of the best alternative without the policy; 0: none
  uint64_t most_search_phases = 400'000;  // phases that a search may simulate (sched/policy/portfolio.h)
  // If not nullptr: a policy that chooses among schedules uses this, and its prediction is of this level.
  SecondLevel* second_level = nullptr;
};

struct Policy {
  std::string_view name;     // as in TRESTLE_SCHED
  std::string_view summary;  // one line for people
  PlannedSchedule (*plan)(PolicyRequest& request);
  bool chooses_chunks = false;  // called once, with most_chunks, not once per number of chunks
};

std::span<const Policy> policies();
// Members of auto's portfolio that TRESTLE_SCHED does not offer, for explanations and comparisons.
std::span<const Policy> portfolio_members();
// Finds a policy of both lists by name. An unknown name is an error that lists the names.
Result<const Policy*> find_policy(std::string_view name);

PlannedSchedule plan_baseline(PolicyRequest& request);
PlannedSchedule plan_themis(PolicyRequest& request);
PlannedSchedule plan_auto(PolicyRequest& request);

// The common last part of all policies: chooses the order of phases per dimension for chunks whose phases are chosen,
// and predicts its time. in_flight 0: as many as keep a link busy while phases wait for their latency, from 4 to
// kMostInFlight. Staging memory does not depend on it, because an operation allocates it for all its chunks at its
// start (engine/prepare/prepared.h).
inline constexpr uint32_t kMostInFlight = 32;
PlannedSchedule order_phases(uint64_t bytes, std::vector<ChunkSchedule> chunks, CostModel& model, PriorityRule rule,
                             uint32_t in_flight);

}  // namespace trestle
