// Which sources of a plan's reductions are sums already, and which are what one rank contributes. An average of small
// floats needs to know: it multiplies each contribution once (kernels/reduce.h). Pure functions, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace trestle {

// The plan of the rank with this index in the group, for an equal request.
using PlanOfRank = std::function<Result<Plan>(int32_t index)>;

// By index into Plan::sources: 1 where a source of a Reduce is a sum of several ranks, 0 where it is one rank's. Asks
// for the plans of the peers whose messages are reduced. In plans that reduce, contributions go straight to a
// reduction: what a Recv takes is a sum.
Result<std::vector<uint8_t>> find_sums(const Plan& plan, const PlanOfRank& plan_of);

}  // namespace trestle
