// The rules that LP-split and the local search try for links, which choose among waiting phases. Pure functions, any
// thread. Ties are decided by the simulation's rule: arrival, then chunk, then stage.
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

// Small phases first (by the larger of the sizes before and after), so that many chunks are under way.
PriorityKey larger_side_last(const SimulatedPhase& phase, const SimulatedPhase* next);
// Small phases first, but the last phases of chunks after all others, because no phase waits for them.
PriorityKey last_phase_behind_all(const SimulatedPhase& phase, const SimulatedPhase* next);
// Chunks with the most remaining phases first, then small ones.
PriorityKey most_phases_left_first(const SimulatedPhase& phase, const SimulatedPhase* next);
// Lowest difference of own time and the next phase's time first, so that short phases feed long ones on other links
// (the idea of Johnson, "Optimal two- and three-stage production schedules with setup times included", 1954).
PriorityKey feed_others_first(const SimulatedPhase& phase, const SimulatedPhase* next);

}  // namespace trestle
