#include "gradient/policy/naive.h"

#include "gradient/policy/single_groups.h"

namespace trestle {

GradientPlan plan_naive(uint32_t tensors) {
  GradientPlan plan;
  plan.shape = StepShape::kAfterBackward;
  plan.groups = single_groups(tensors);
  return plan;
}

}  // namespace trestle
