#include "gradient/policy/dear.h"

#include "gradient/policy/by_sizes.h"

namespace trestle {

std::vector<TensorGroup> dear_groups(const GradientWorkload& workload, uint64_t most_bytes) {
  return filled_groups(workload, most_bytes, FillOrder::kForward);
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
