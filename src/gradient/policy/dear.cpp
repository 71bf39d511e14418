#include "gradient/policy/dear.h"

namespace trestle {

std::vector<TensorGroup> dear_groups(const GradientWorkload& workload, uint64_t most_bytes) {
  std::vector<TensorGroup> groups;
  uint64_t filled = 0;
  for (uint32_t i = 0; i < workload.tensors.size(); ++i) {
    const uint64_t bytes = workload.tensors[i].bytes;
    const bool fits = !groups.empty() && filled <= most_bytes && bytes <= most_bytes - filled;
    if (fits) {
      groups.back().last = i;
      filled += bytes;
    } else {
      groups.push_back({i, i});
      filled = bytes;
    }
  }
  return groups;
}

GradientPlan plan_dear(const GradientWorkload& workload, uint64_t most_bytes, GatherIssue gather) {
  GradientPlan plan;
  plan.shape = StepShape::kSplit;
  plan.groups = dear_groups(workload, most_bytes);
  plan.gather_groups = plan.groups;
  plan.gather = gather;
  return plan;
}

}  // namespace trestle
