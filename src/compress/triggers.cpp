#include "compress/triggers.h"

#include <cmath>

namespace trestle {
namespace {

constexpr double kOlderWeighs = 1 - 0.01;

// Whether `now` differs from `before` by more than this part of it.
bool has_changed(double before, double now, double threshold) {
  return std::abs(now - before) > threshold * std::abs(before);
}

}  // namespace

bool GainTrigger::add(double gain) {
  if (!std::isfinite(gain)) return false;
  gains_[count_++ % kWindow] = gain;
  if (count_ < kWindow) return false;
  double sum = 0;
  double weights = 0;
  double weight = 1;
  for (size_t j = 0; j < kWindow; ++j) {
    sum += weight * gains_[(count_ - 1 - j) % kWindow];
    weights += weight;
    weight *= kOlderWeighs;
  }
  const double smoothed = sum / weights;
  if (count_ == kWindow) reference_ = smoothed;
  // At the threshold too.
  return smoothed != reference_ && std::abs(smoothed - reference_) >= threshold_ * std::abs(reference_);
}

void GainTrigger::measured() {
  count_ = 0;
}

bool LinkTrigger::update(double startup_s, double per_byte_s) {
  const bool changed = !known_ || has_changed(startup_s_, startup_s, threshold_) ||
                       has_changed(per_byte_s, per_byte_s_, threshold_);  // of 1 / beta
  if (!changed) return false;
  known_ = true;
  startup_s_ = startup_s;
  per_byte_s_ = per_byte_s;
  return true;
}

}  // namespace trestle
