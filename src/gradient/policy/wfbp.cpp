#include "gradient/policy/wfbp.h"

#include "gradient/policy/single_groups.h"

namespace trestle {

GradientPlan plan_wfbp(uint32_t tensors) {
  GradientPlan plan;
  plan.groups = single_groups(tensors);
  return plan;
}

}  // namespace trestle
