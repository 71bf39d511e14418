// All policies of the training step, one row each. Policies that change more come later. Pure, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradient/policy/policy.h"

namespace trestle {

std::span<const GradientPolicy> gradient_policies();

// A row with arguments.
struct ChosenPolicy {
  const GradientPolicy* policy = nullptr;
  PolicyArguments arguments;
  std::string text;  // as written: "dear:25M:eager"
};

// Errors (kInvalidArgument): an unknown name, with the list of names; wrong words behind it.
Result<ChosenPolicy> parse_gradient_policy(std::string_view text);
// The variants of all rows that take no liberties but these, in the order of the rows.
std::vector<ChosenPolicy> allowed_policies(uint32_t liberties);

// Whether the policy's plan depends on compute times and the link's costs, not on sizes alone.
bool reads_times(const ChosenPolicy& chosen);

// liberties, link_ratios: as in StepPlanRequest. Errors: those of the policy; kInvalidArgument without tensors;
// kInternalError if the plan breaks a rule of check_plan.
Result<PlannedStep> plan_step(const ChosenPolicy& chosen, const GradientWorkload& workload, const GradientLink& link,
                              uint32_t liberties = kLibertyNone, const std::vector<double>& link_ratios = {});
// plan_step() with a whole request, whose `arguments` are replaced by the chosen ones.
Result<PlannedStep> plan_step(const ChosenPolicy& chosen, StepPlanRequest request);

// The fastest by its predicted time of all variants that the request's liberties allow. Of equal ones, the one with
// fewer liberties, then the one whose gradients are less old, then the first row.
Result<PlannedStep> plan_fastest(const StepPlanRequest& request);

}  // namespace trestle
