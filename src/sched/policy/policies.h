// Policies: how the chunks of a reduce-scatter, an all-gather or both go over the dimensions (TRESTLE_SCHED). The list
// of all: one row each. Adding a policy = its file + its row in policies.cpp + its name in the table of variables.
//
// A policy is a pure function, called by any thread: equal requests give equal schedules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sched/model/simulate.h"
#include "sched/policy/priority_rules.h"
#include "sched/schedule.h"
#include "sched/select/algorithm_choice.h"

namespace trestle {

class SecondLevel;

struct PolicyRequest {
  AlgorithmChoice& algorithms;      // knows the topology and the costs
  std::vector<uint8_t> dimensions;  // to go over, innermost first; or kFlat alone
  bool reduce_scatter = false;
  bool all_gather = false;                 // both: the all-gather phases follow the reduce-scatter phases
  uint64_t bytes = 0;                      // as Schedule::bytes; in the paper's model parts
  std::vector<uint64_t> chunk_bytes = {};  // proposed: equal chunks
  uint32_t in_flight = 0;                  // per dimension; 0: the policy's choice
  // How links choose among waiting phases, for policies that leave it open (TRESTLE_INTRA).
  PriorityRule intra = smallest_chunk_first;
  // Chunks of other sizes than those proposed are multiples of this (the last one takes what does not divide).
  uint64_t granule = 1;
  uint64_t fewest_bytes = 1;   // of such a chunk, as far as there are enough for one
  uint32_t most_chunks = 0;    // a policy that chooses the number of chunks takes at most these; 0: those proposed
  uint64_t to_beat_ticks = 0;  // predicted time of what would be done otherwise; 0: nothing
  uint64_t most_search_phases = 400'000;  // that a search may simulate (sched/policy/portfolio.h)
  // Not nullptr: a policy that chooses among schedules does so by this, and its prediction is of this level.
  SecondLevel* second_level = nullptr;
};

struct PlannedSchedule {
  Schedule schedule;
  uint64_t time_ticks = 0;    // as predicted by the request's model, 0 for nothing
  uint64_t phases_ticks = 0;  // where that is by steps: by whole phases
};

// Ties of the model of steps, which are common where a shared resource decides, go to what is faster by whole phases:
// these charge every step's latency, which segments hide in the model and only in part in truth.
inline bool is_faster(const PlannedSchedule& a, const PlannedSchedule& b) {
  return a.time_ticks != b.time_ticks ? a.time_ticks < b.time_ticks : a.phases_ticks < b.phases_ticks;
}

struct Policy {
  std::string_view name;     // as in TRESTLE_SCHED
  std::string_view summary;  // one line for people
  PlannedSchedule (*plan)(PolicyRequest& request);
  bool chooses_chunks = false;  // called once, with most_chunks, instead of once per number of chunks
};

std::span<const Policy> policies();
// What auto has besides these: to be explained and compared, no choice of TRESTLE_SCHED.
std::span<const Policy> portfolio_members();
// Of both lists, by name; an unknown name is an error that lists the names.
Result<const Policy*> find_policy(std::string_view name);

PlannedSchedule plan_baseline(PolicyRequest& request);
PlannedSchedule plan_themis(PolicyRequest& request);
PlannedSchedule plan_auto(PolicyRequest& request);

// What all policies end with: the order of phases per dimension and its prediction, from chunks whose phases are
// chosen. in_flight 0: as many as keep a link busy while phases wait for their latency, from 4 to kMostInFlight.
// Staging does not depend on it: an operation has what all its chunks need from its start (engine/prepare/prepared.h).
inline constexpr uint32_t kMostInFlight = 32;
PlannedSchedule order_phases(uint64_t bytes, std::vector<ChunkSchedule> chunks, CostModel& model, PriorityRule rule,
                             uint32_t in_flight);

}  // namespace trestle
