// Parts of tensors, the lowest ready tensor first; the next forward pass waits for the parts of each tensor. Pure, any
// thread.
//
// ByteScheduler (Peng et al., SOSP 2019) with one part at a time on the channel. Its defaults are parts of
// a million parameters, and four such parts in flight. On all-reduces every part costs another startup, so with many
// workers it loses to fused messages.
#pragma once

#include "gradient/plan.h"

namespace trestle {

inline constexpr uint64_t kPartBytes = 4'000'000;  // a million parameters
inline constexpr uint64_t kMostParts = 1 << 20;    // of a workload: a limit of memory

// negotiation_s is added to each part: the workers must agree which one is next. Errors (kInvalidArgument): more than
// kMostParts.
Result<GradientPlan> plan_priority(const GradientWorkload& workload, uint64_t part_bytes, double negotiation_s = 0);

}  // namespace trestle
