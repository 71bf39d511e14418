#include "gradient/plan.h"

#include <string>

namespace trestle {
namespace {

Status check_groups(const std::vector<TensorGroup>& groups, size_t tensors, const char* which) {
  size_t next = 0;
  for (const TensorGroup& group : groups) {
    if (group.first != next || group.last < group.first || group.last >= tensors) {
      return Error{Code::kInternalError, std::string(which) + ": a group goes from tensor " +
                                             std::to_string(group.first) + " to " + std::to_string(group.last) +
                                             " where tensor " + std::to_string(next) + " comes next of " +
                                             std::to_string(tensors)};
    }
    next = size_t{group.last} + 1;
  }
  if (next == tensors) return {};
  return Error{Code::kInternalError, std::string(which) + ": tensor " + std::to_string(next) + " is in no group"};
}

}  // namespace

Status check_plan(const GradientPlan& plan, size_t tensors) {
  TRY(check_groups(plan.groups, tensors, "groups"));
  if (plan.shape == StepShape::kSplit) return check_groups(plan.gather_groups, tensors, "gather_groups");
  if (plan.shape == StepShape::kByPriority && plan.part_bytes == 0) {
    return Error{Code::kInternalError, "parts have no bytes"};
  }
  if (plan.shape != StepShape::kDelayed) return {};
  if (plan.delayed.buckets.size() != plan.groups.size()) {
    return Error{Code::kInternalError, std::to_string(plan.delayed.buckets.size()) + " buckets for " +
                                           std::to_string(plan.groups.size()) + " groups"};
  }
  return check_deft(plan.delayed);
}

}  // namespace trestle
