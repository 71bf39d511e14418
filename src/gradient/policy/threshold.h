// Buffers of at most so many bytes, filled in the order of the backward pass, as Horovod and PyTorch's DDP fill them.
// Pure, any thread.
//
// DeAR (arXiv 2302.12445) describes both beside its own tensor fusion. A tensor joins while the total stays within the
// buffer. A larger tensor travels alone.
#pragma once

#include "gradient/plan.h"

namespace trestle {

inline constexpr uint64_t kThresholdBytes = uint64_t{25} << 20;  // DDP's default

GradientPlan plan_threshold(const GradientWorkload& workload, uint64_t most_bytes);

}  // namespace trestle
