// The cost of a message, fitted to measured times: by least squares of the relative errors, so that small messages
// count as much as large ones. Pure, any thread.
#pragma once

#include <cstdint>
#include <span>

#include "gradient/workload.h"

namespace trestle {

struct MeasuredMessage {
  double bytes = 0;
  double seconds = 0;  // more than 0
};

// Minimises the sum of ((a + b s) / t - 1)^2 over the points with a >= 0 and b >= 0. At least one point.
MessageCost fit_cost(std::span<const MeasuredMessage> points);

// fit_cost(), but points far from the line of the others count less: nearly the least sum of absolute relative errors.
// A link's times are not quite a line. A size that fits into a shaper's bucket, or for which another algorithm is
// chosen, would else tilt the line for all sizes.
MessageCost fit_cost_robustly(std::span<const MeasuredMessage> points);

}  // namespace trestle
