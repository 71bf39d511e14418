// Every tensor alone, as soon as it is ready (wait-free backpropagation). Pure, any thread.
//
// MG-WFBP (arXiv 1912.09268), equations 7 and 8. Zhang et al., Poseidon, USENIX ATC 2017.
#pragma once

#include "gradient/plan.h"

namespace trestle {

GradientPlan plan_wfbp(uint32_t tensors);

}  // namespace trestle
