#include "sched/policy/priority_rules.h"

#include <string>

#include "base/text/names.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

constexpr NamedRule kPriorityRules[] = {
    {"fifo", "first in, first out", first_in_first_out},
    {"scf", "smallest chunk first: by the size before the phase", smallest_chunk_first},
};

}  // namespace

std::span<const NamedRule> priority_rules() {
  return kPriorityRules;
}

Result<PriorityRule> find_priority_rule(std::string_view name) {
  const auto found = row_named(kPriorityRules, name, "a rule of priority");
  if (!found.ok()) return Error{Code::kInvalidArgument, "TRESTLE_INTRA: " + found.error().message};
  return found.value()->rule;
}

PriorityKey first_in_first_out(const SimulatedPhase&, const SimulatedPhase*) {
  return {0, 0};
}

PriorityKey smallest_chunk_first(const SimulatedPhase& phase, const SimulatedPhase*) {
  return {phase.size_before, phase.kind == PhaseKind::kAllGather ? uint64_t{1} : uint64_t{0}};
}

}  // namespace trestle
