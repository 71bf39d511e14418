#include "gradient/policy/by_sizes.h"

#include <algorithm>

namespace trestle {

GradientPlan plan_wfbp(uint32_t tensors) {
  return plan_nearby(tensors, 1);
}

GradientPlan plan_naive(uint32_t tensors) {
  GradientPlan plan = plan_wfbp(tensors);
  plan.shape = StepShape::kAfterBackward;
  return plan;
}

GradientPlan plan_sync(uint32_t tensors) {
  return plan_nearby(tensors, tensors);
}

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

GradientPlan plan_threshold(const GradientWorkload& workload, uint64_t most_bytes) {
  GradientPlan plan;
  plan.groups = filled_groups(workload, most_bytes, FillOrder::kBackward);
  return plan;
}

std::vector<TensorGroup> filled_groups(const GradientWorkload& workload, uint64_t most_bytes, FillOrder order) {
  const auto tensors = static_cast<uint32_t>(workload.tensors.size());
  const bool backward = order == FillOrder::kBackward;
  std::vector<TensorGroup> groups;
  uint64_t filled = 0;
  for (uint32_t n = 0; n < tensors; ++n) {
    const uint32_t tensor = backward ? tensors - 1 - n : n;
    const uint64_t bytes = workload.tensors[tensor].bytes;
    if (!groups.empty() && filled <= most_bytes && bytes <= most_bytes - filled) {
      (backward ? groups.back().first : groups.back().last) = tensor;
      filled += bytes;
    } else {
      groups.push_back({tensor, tensor});
      filled = bytes;
    }
  }
  if (backward) std::reverse(groups.begin(), groups.end());
  return groups;
}

std::vector<TensorGroup> single_groups(uint32_t tensors) {
  return plan_wfbp(tensors).groups;
}

}  // namespace trestle
