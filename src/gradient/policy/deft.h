// DeFT (arXiv 2503.16815) as a policy: buffers as in threshold.h become DeFT's buckets, and its queues decide which
// travel in which pass (gradient/deft/queues.h). Updates use gradients of earlier steps. One link. Pure, any thread.
#pragma once

#include "gradient/policy/policy.h"

namespace trestle {

// The predicted time is the mean of a run from the first step on. Errors: those of simulate_deft.
Result<PlannedStep> plan_deft(const PolicyRequest& request);

}  // namespace trestle
