// DeFT (arXiv 2503.16815) as a policy: buffers as in threshold.h become DeFT's buckets, and its queues decide which
// travel in which pass and on which link (gradient/deft/queues.h). Updates use gradients of earlier steps. Pure, any
// thread.
#pragma once

#include "gradient/policy/policy.h"

namespace trestle {

inline constexpr double kMostLinkRatio = 1000;

// The predicted time is the mean of a run from the first step on. Errors: those of simulate_deft; a ratio of links that
// is not from 1 to 1000 (kInvalidArgument).
Result<PlannedStep> plan_deft(const PolicyRequest& request);

}  // namespace trestle
