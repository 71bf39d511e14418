#include "gradient/policy/priority.h"

#include <string>

#include "gradient/part_channel.h"
#include "gradient/policy/by_sizes.h"

namespace trestle {

Result<GradientPlan> plan_priority(const GradientWorkload& workload, uint64_t part_bytes, double negotiation_s) {
  const uint64_t parts = PartChannel(workload, {}, part_bytes).parts_left();
  if (parts > kMostParts) {
    return Error{Code::kInvalidArgument, "parts of " + std::to_string(part_bytes) + " bytes are " +
                                             std::to_string(parts) + "; at most " + std::to_string(kMostParts) +
                                             " are possible"};
  }
  GradientPlan plan;
  plan.shape = StepShape::kByPriority;
  plan.groups = single_groups(static_cast<uint32_t>(workload.tensors.size()));
  plan.part_bytes = part_bytes;
  plan.negotiation_s = negotiation_s;
  return plan;
}

}  // namespace trestle
