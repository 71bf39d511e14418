// The rules by which a link chooses among the phases that wait for it, by name. Adding one = its function and its row.
// Pure functions, any thread. All end with the simulation's own rule for ties: arrival, then chunk, then stage.
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

// Those that TRESTLE_INTRA may name.
std::span<const NamedRule> priority_rules();
// By name; an unknown name is an error that lists the names.
Result<PriorityRule> find_priority_rule(std::string_view name);

// By arrival alone.
PriorityKey first_in_first_out(const SimulatedPhase& phase, const SimulatedPhase* next);
// Smallest chunk first (Themis, section 4.4): the size before the phase; of equal ones a reduce-scatter before an
// all-gather, because its transfer is the shorter.
PriorityKey smallest_chunk_first(const SimulatedPhase& phase, const SimulatedPhase* next);

}  // namespace trestle
