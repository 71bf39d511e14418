#include "compress/link_estimate.h"

#include <cmath>

namespace trestle {
namespace {

// A determinant below this part of its largest value is rounding error: all messages have one shape.
constexpr double kOneShape = 1e-9;

}  // namespace

TimedMessage timed_exchange(SparseCollective collective, double elements, uint32_t workers, double seconds,
                            size_t value_bytes) {
  SparseExchange exchange = sparse_exchange(elements, value_bytes, workers);
  exchange.startup_s = 1;
  const double startups = sparse_costs(exchange).of(collective);
  exchange.startup_s = 0;
  exchange.per_byte_s = 1;
  return {startups, sparse_costs(exchange).of(collective), seconds};
}

TimedMessage with_norms(TimedMessage message, uint32_t workers) {
  message.startups += std::log2(static_cast<double>(workers));
  message.bytes += static_cast<double>(sizeof(double)) * (workers - 1);
  return message;
}

void LinkEstimate::add(const TimedMessage& message) {
  if (!(message.startups > 0) || !(message.seconds > 0) || !std::isfinite(message.seconds)) return;
  const double x = message.startups / message.seconds;
  const double y = message.bytes / message.seconds;
  xx_ = keep_ * xx_ + x * x;
  xy_ = keep_ * xy_ + x * y;
  yy_ = keep_ * yy_ + y * y;
  x_ = keep_ * x_ + x;
  y_ = keep_ * y_ + y;
  solve();
}

void LinkEstimate::solve() {
  const double determinant = xx_ * yy_ - xy_ * xy_;
  if (determinant > kOneShape * xx_ * yy_) {
    cost_ = {(x_ * yy_ - y_ * xy_) / determinant, (y_ * xx_ - x_ * xy_) / determinant};
    if (cost_.startup_s < 0) cost_ = {0, y_ / yy_};
    if (cost_.per_byte_s < 0) cost_ = {x_ / xx_, 0};
    return;
  }
  if (cost_.startup_s <= 0 && cost_.per_byte_s <= 0) {
    cost_ = {x_ / xx_, 0};
    return;
  }
  // Both costs get the same factor f, by the least squares of f (x alpha + y beta) - 1.
  const double alpha = cost_.startup_s;
  const double beta = cost_.per_byte_s;
  const double squares = alpha * alpha * xx_ + 2 * alpha * beta * xy_ + beta * beta * yy_;
  const double factor = (alpha * x_ + beta * y_) / squares;
  cost_ = {alpha * factor, beta * factor};
}

}  // namespace trestle
