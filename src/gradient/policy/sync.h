// All gradients as one message behind the backward pass (SyncEASGD). Pure, any thread.
//
// MG-WFBP (arXiv 1912.09268), equation 9: T = T_f + T_b + a + b * all bytes.
#pragma once

#include "gradient/plan.h"

namespace trestle {

GradientPlan plan_sync(uint32_t tensors);

}  // namespace trestle
