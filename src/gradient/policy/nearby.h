// So many tensors in a row as one message, counted in the order of the backward pass. Pure, any thread.
//
// DeAR (arXiv 2302.12445), tensor fusion: "nearby layers", by default four.
#pragma once

#include "gradient/plan.h"

namespace trestle {

inline constexpr uint32_t kNearbyTensors = 4;

GradientPlan plan_nearby(uint32_t tensors, uint32_t in_a_row);

}  // namespace trestle
