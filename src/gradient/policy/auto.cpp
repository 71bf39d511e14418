// The policy auto (policies.h): predicts every allowed policy and takes the fastest.
#include <bit>
#include <tuple>

#include "gradient/policy/policies.h"

namespace trestle {
namespace {

// What is worse is larger: the time, then the statistical cost.
auto rank(const ChosenPolicy& chosen, const PlannedStep& step) {
  return std::make_tuple(step.time.iteration_s, std::popcount(chosen.policy->liberties), step.age);
}

}  // namespace

Result<PlannedStep> plan_fastest(const StepPlanRequest& request) {
  const std::vector<ChosenPolicy> allowed = allowed_policies(request.liberties);
  size_t best = 0;
  Result<PlannedStep> found = Error{Code::kInternalError, "no policy is allowed"};
  for (size_t i = 0; i < allowed.size(); ++i) {
    // A policy that refuses the workload, for example because of too many parts, is no choice.
    Result<PlannedStep> step = plan_step(allowed[i], request);
    if (!step.ok()) continue;
    if (found.ok() && rank(allowed[best], found.value()) <= rank(allowed[i], step.value())) continue;
    best = i;
    found = std::move(step);
  }
  return found;
}

}  // namespace trestle
