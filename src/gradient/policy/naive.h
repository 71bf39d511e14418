// Every tensor alone, once the backward pass is complete. Pure, any thread.
//
// MG-WFBP (arXiv 1912.09268), equation 3: T = T_f + T_b + the sum of all costs.
#pragma once

#include "gradient/plan.h"

namespace trestle {

GradientPlan plan_naive(uint32_t tensors);

}  // namespace trestle
