#include "gradient/executor/link_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trestle {
namespace {

constexpr int kReweightings = 60;
constexpr double kLeastError = 0.01;  // points with a smaller error all have the same weight

MessageCost fit_weighted(std::span<const MeasuredMessage> points, const std::vector<double>& weights) {
  // With x = 1/t and y = s/t: a x + b y = 1 for each point.
  double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = 1 / points[i].seconds;
    const double y = points[i].bytes / points[i].seconds;
    xx += weights[i] * x * x;
    xy += weights[i] * x * y;
    yy += weights[i] * y * y;
    x1 += weights[i] * x;
    y1 += weights[i] * y;
  }
  const double determinant = xx * yy - xy * xy;
  if (determinant > 1e-12 * xx * yy) {
    const MessageCost cost{(x1 * yy - y1 * xy) / determinant, (y1 * xx - x1 * xy) / determinant};
    if (cost.startup_s >= 0 && cost.per_byte_s >= 0) return cost;
    if (cost.startup_s < 0) return {0, y1 / yy};
  }
  // All messages have one size, or smaller messages take longer. Then a message's size does not count.
  return {x1 / xx, 0};
}

}  // namespace

MessageCost fit_cost(std::span<const MeasuredMessage> points) {
  return fit_weighted(points, std::vector<double>(points.size(), 1));
}

// Iteratively reweighted least squares.
MessageCost fit_cost_robustly(std::span<const MeasuredMessage> points) {
  MessageCost cost = fit_cost(points);
  std::vector<double> weights(points.size());
  for (int round = 0; round < kReweightings; ++round) {
    for (size_t i = 0; i < points.size(); ++i) {
      const double error = (cost.startup_s + cost.per_byte_s * points[i].bytes) / points[i].seconds - 1;
      weights[i] = 1 / std::max(std::fabs(error), kLeastError);
    }
    cost = fit_weighted(points, weights);
  }
  return cost;
}

}  // namespace trestle
