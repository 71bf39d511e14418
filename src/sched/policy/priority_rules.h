// The rules by which a link chooses among waiting phases, by name. To add one, add its function and its row. Pure
// functions, any thread. Ties are decided by the simulation's rule: arrival, then chunk, then stage.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "sched/model/simulate.h"

namespace trestle {

struct NamedRule {
  std::string_view name;     // as in TRESTLE_INTRA
  std::string_view summary;  // one line for people
  PriorityRule rule;
};

// The values of TRESTLE_INTRA.
std::span<const NamedRule> priority_rules();
// Finds a rule by name. An unknown name is an error that lists the names.
Result<PriorityRule> find_priority_rule(std::string_view name);

// Arrival decides.
PriorityKey first_in_first_out(const SimulatedPhase& phase, const SimulatedPhase* next);
// Smallest chunk first (Themis, section 4.4), by the size before the phase. Of equal ones a reduce-scatter goes before
// an all-gather, because its transfer is shorter.
PriorityKey smallest_chunk_first(const SimulatedPhase& phase, const SimulatedPhase* next);

}  // namespace trestle
