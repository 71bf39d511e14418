#include "gradient/policy/threshold.h"

#include <algorithm>

namespace trestle {

GradientPlan plan_threshold(const GradientWorkload& workload, uint64_t most_bytes) {
  GradientPlan plan;
  uint64_t filled = 0;
  for (size_t i = workload.tensors.size(); i-- > 0;) {
    const uint64_t bytes = workload.tensors[i].bytes;
    const auto tensor = static_cast<uint32_t>(i);
    const bool fits = !plan.groups.empty() && filled <= most_bytes && bytes <= most_bytes - filled;
    if (fits) {
      plan.groups.back().first = tensor;
      filled += bytes;
    } else {
      plan.groups.push_back({tensor, tensor});
      filled = bytes;
    }
  }
  std::reverse(plan.groups.begin(), plan.groups.end());
  return plan;
}

}  // namespace trestle
