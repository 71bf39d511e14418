// The best groups for the reduce-scatters and, apart from them, the best groups for the all-gathers of a split step.
// Pure, any thread.
//
// No paper has it: DeAR's split (arXiv 2302.12445) with exact groups. The two passes do not overlap, so each is solved
// alone: the backward pass as in optimal.h, with the cost of a reduce-scatter. With eager all-gathers of g groups of
// the tensors 0 .. j-1, whose bytes are S_j, the last all-gather ends at g a + b S_j, whatever the groups are. So with
// F[j][g] the end of their forward pass:
//   F[0][0] = 0;  F[j][g] = the least over i < j of  max(F[i][g-1], g a + b S_j) + forward time of i .. j-1
// Exact. O(L^2 G), where G is the number of groups at which the startups alone exceed the best plan.
// Every tensor must be sharded by itself, so that any run of tensors is a legal message in both passes.
#pragma once

#include "gradient/plan.h"

namespace trestle {

// The groups whose all-gathers let the forward pass end first.
std::vector<TensorGroup> optimal_gather_groups(const GradientWorkload& workload, const MessageCost& all_gather);
GradientPlan plan_split_free(const GradientWorkload& workload, const GradientLink& link);

}  // namespace trestle
