// DeAR: reduce-scatters behind the backward pass, all-gathers before the next forward pass, in buffers of fixed size.
// Pure, any thread.
//
// DeAR (arXiv 2302.12445), BackPipe, FeedPipe and tensor fusion. Buffers are filled in forward order: a tensor joins
// while the total stays within the buffer, a larger one travels alone. The text issues an all-gather when the forward
// pass of the group before it begins (kOneAhead). The authors' code issues them from the host, which runs ahead, so
// they are eager.
#pragma once

#include "gradient/plan.h"

namespace trestle {

inline constexpr uint64_t kDearBytes = uint64_t{25} << 20;

std::vector<TensorGroup> dear_groups(const GradientWorkload& workload, uint64_t most_bytes);
GradientPlan plan_dear(const GradientWorkload& workload, uint64_t most_bytes, GatherIssue gather);

}  // namespace trestle
