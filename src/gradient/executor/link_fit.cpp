#include "gradient/executor/link_fit.h"

namespace trestle {

MessageCost fit_cost(std::span<const MeasuredMessage> points) {
  // With x = 1/t and y = s/t: a x + b y = 1 for each point.
  double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
  for (const MeasuredMessage& point : points) {
    const double x = 1 / point.seconds;
    const double y = point.bytes / point.seconds;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x1 += x;
    y1 += y;
  }
  const double determinant = xx * yy - xy * xy;
  if (determinant > 1e-12 * xx * yy) {
    const MessageCost cost{(x1 * yy - y1 * xy) / determinant, (y1 * xx - x1 * xy) / determinant};
    if (cost.startup_s >= 0 && cost.per_byte_s >= 0) return cost;
    if (cost.startup_s < 0) return {0, y1 / yy};
  }
  // All of one size, or smaller messages take longer.
  return {x1 / xx, 0};
}

}  // namespace trestle
