// The rules by which LP-split and the local search let a link choose among the phases that wait for it. Pure functions,
// any thread. Ties end with the simulation's own rule: arrival, then chunk, then stage.
#pragma once

#include <span>
#include <string_view>

#include "sched/model/simulate.h"

namespace trestle {

struct OrderRule {
  std::string_view name;
  PriorityRule rule;
};

// In the order in which they are tried.
std::span<const OrderRule> order_rules();

// The larger of a phase's sizes before and after: small data first, so that many chunks are under way.
PriorityKey larger_side_last(const SimulatedPhase& phase, const SimulatedPhase* next);
// The same, but the last phase of a chunk behind all others: nobody waits for it.
PriorityKey last_phase_behind_all(const SimulatedPhase& phase, const SimulatedPhase* next);
// Chunks with most phases to go first, then small ones.
PriorityKey most_phases_left_first(const SimulatedPhase& phase, const SimulatedPhase* next);
// Own time minus the next phase's time: what feeds the other links most for the least goes first (the idea of Johnson,
// "Optimal two- and three-stage production schedules with setup times included", 1954).
PriorityKey feed_others_first(const SimulatedPhase& phase, const SimulatedPhase* next);

}  // namespace trestle
