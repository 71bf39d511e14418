#include "gradient/policy/nearby.h"

#include <algorithm>

namespace trestle {

GradientPlan plan_nearby(uint32_t tensors, uint32_t in_a_row) {
  GradientPlan plan;
  for (uint32_t end = tensors; end > 0;) {
    const uint32_t taken = std::min(in_a_row, end);
    plan.groups.push_back({end - taken, end - 1});
    end -= taken;
  }
  std::reverse(plan.groups.begin(), plan.groups.end());
  return plan;
}

}  // namespace trestle
