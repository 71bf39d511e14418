// The policy auto (policies.h): predicts every allowed policy and takes the fastest.
#include <bit>
#include <tuple>

#include "gradient/policy/policies.h"

namespace trestle {
namespace {

// Larger is worse: first the time, then what the policy does to the training (its liberties, and the age of gradients).
auto rank(const ChosenPolicy& chosen, const PlannedStep& step) {
  return std::make_tuple(step.time.iteration_s, std::popcount(chosen.policy->liberties), step.age);
}

}  // namespace

Result<PlannedStep> plan_fastest(const StepPlanRequest& request) {
  const std::vector<ChosenPolicy> allowed = allowed_policies(request.liberties);
  size_t best = 0;
  Result<PlannedStep> found = Error{Code::kInternalError, "no policy is allowed"};
  for (size_t i = 0; i < allowed.size(); ++i) {
    // A policy may refuse the workload, for example because of too many parts. Then it is left out.
    Result<PlannedStep> step = plan_step(allowed[i], request);
    if (!step.ok()) continue;
    if (found.ok() && rank(allowed[best], found.value()) <= rank(allowed[i], step.value())) continue;
    best = i;
    found = std::move(step);
  }
  return found;
}

}  // namespace trestle
