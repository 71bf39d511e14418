// DeFT (arXiv 2503.16815) as a policy: buffers as of plan_threshold() become DeFT's buckets, and its queues decide
// which travel in which pass, and on which link (gradient/deft/queues.h). Updates use gradients of earlier steps. Pure,
// any thread.
#pragma once

#include "gradient/deft_buckets.h"
#include "gradient/policy/policy.h"

namespace trestle {

inline constexpr double kMostLinkRatio = 1000;

// What the queues schedule: the groups as buckets, on the first link and on those of request.link_ratios. Errors
// (kInvalidArgument): a ratio that is not from 1 to 1000.
Result<DeftSystem> deft_system(const StepPlanRequest& request, const std::vector<TensorGroup>& groups);

// With a model of the loss, the Preserver lets the knapsacks grow until updates are frequent enough
// (gradient/deft/preserver.h). Then compute may wait. The predicted time is the mean over a simulated run from its
// first step on. Errors: those of deft_system, preserve, simulate_deft and deft_cycle.
Result<PlannedStep> plan_deft(const StepPlanRequest& request);

}  // namespace trestle
