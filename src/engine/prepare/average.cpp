#include "engine/prepare/average.h"

#include <algorithm>

namespace trestle {

namespace {

Result<PlanCache::Sums> find_sums_of(const PreparedPhase& phase, const PrepareContext& context) {
  const Plan& plan = *phase.plan;
  const PlanRequest request{plan.kind, plan.group_size, plan.me, plan.root, plan.in_place};
  const uint16_t algorithm = phase.choice.algorithm;
  if (context.plans != nullptr) return context.plans->sums(algorithm, request, context.check_plans);
  return std::make_shared<const std::vector<uint8_t>>(TRY(sums_of(plan, algorithm, request)));
}

}  // namespace

Status mark_average(std::vector<PreparedPhase>& phases, DataType type, const PrepareContext& context) {
  const auto adds = [](const PreparedPhase& phase) { return reduces(phase.choice.kind); };
  if (!is_small_float(type)) {
    const auto last = std::find_if(phases.rbegin(), phases.rend(), adds);
    if (last != phases.rend()) last->average_output = true;
    return {};
  }
  const auto first = std::find_if(phases.begin(), phases.end(), [&](const PreparedPhase& phase) {
    return adds(phase) && phase.plan->group_size > 1;
  });
  if (first != phases.end()) first->sums = TRY(find_sums_of(*first, context));
  return {};
}

}  // namespace trestle
