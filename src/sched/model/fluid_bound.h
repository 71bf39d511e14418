// The fluid bound: a time below which no schedule of a request can complete in the model, whatever its chunks, orders
// and algorithms. Pure, any thread.
//
// Chunks become a fluid: each order of dimensions carries a share, every link and shared resource is busy for what all
// shares put on it, and costs per chunk are paid once. The least load of the heaviest row, a linear programme's lower
// bound (sched/policy/lp_split.h), plus what no overlap can hide.
#pragma once

#include <cstdint>

#include "sched/policy/policies.h"

namespace trestle {

uint64_t fluid_bound_ticks(PolicyRequest& request);

}  // namespace trestle
