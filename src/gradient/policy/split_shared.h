// The best groups for a split step whose reduce-scatters and all-gathers have the same groups. Pure, any thread.
//
// No paper has it: DeAR's split (arXiv 2302.12445) with exact groups. For g groups of the tensors 0 .. j-1, a label (R,
// F) is the end of their reduce-scatters in the backward pass and of their forward pass. With the next group i .. j-1:
//   R = max(R', ready[i] + g a + b S_j) with the costs of the reduce-scatter; S_j: bytes of the tensors 0 .. j-1
//   F = max(F', g a + b S_j) with those of the all-gather, + forward time of i .. j-1
// Labels that another one beats in both are dropped, and so are labels that cannot beat the best known plan. Exact
// while no (j, g) has more than kMostLabels labels; of more the search keeps an even selection. Where copies cost
// something and tensors lie apart, the search counts copies of all bytes, also for groups of one tensor, which are not
// copied. Then it is not exact, but its plan takes no longer than the simpler plans it begins with.
#pragma once

#include "gradient/plan.h"

namespace trestle {

inline constexpr size_t kMostLabels = 256;

// Never slower than plan_dear with eager all-gathers and a buffer of whole MiB from 1 to 100.
GradientPlan plan_split_shared(const GradientWorkload& workload, const GradientLink& link);

}  // namespace trestle
