// The fluid bound: no schedule of a request is faster in the model, whatever its chunks, orders and algorithms. Pure,
// any thread.
//
// The bound treats the chunks as a fluid. Each order of dimensions carries a share, every link and shared resource is
// busy for the sum of all shares on it, and costs per chunk count once. The bound is the smallest possible load of the
// most loaded row, by the lower bound of a linear programme (sched/policy/lp_split.h), plus the times that cannot
// overlap with it.
#pragma once

#include <cstdint>

#include "sched/policy/policies.h"

namespace trestle {

uint64_t fluid_bound_ticks(PolicyRequest& request);

}  // namespace trestle
