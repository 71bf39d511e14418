#include "perf/train_step/replay.h"

#include <algorithm>
#include <utility>

#include "perf/driver/ending.h"

namespace trestle::perf {
namespace {

// A wait that takes longer has slept: then the next compute begins when the wait returns. After a shorter wait it
// begins when the previous compute was due to end, so that delays of wake-ups do not add up.
constexpr int64_t kSleptNs = 10'000;

}  // namespace

Replay::Replay(trestleGrad_t grad, const GradientWorkload& workload, StepGradients& gradients, bool verified, int spoil)
    : grad_(grad),
      workload_(workload),
      gradients_(gradients),
      verified_(verified),
      spoil_(static_cast<uint64_t>(spoil)) {}

void Replay::begin(bool compares) {
  compares_ = verified_ && compares;
  wrong_ = 0;
  forget_calls();
  end_ns_ = at_ns_ = StepClock::now_ns();
}

void Replay::forget_calls() {
  late_sum_ns_ = 0;
  ready_ns_.clear();
}

double Replay::late_ns() const {
  return ready_ns_.empty() ? 0 : late_sum_ns_ / static_cast<double>(ready_ns_.size());
}

void Replay::wait_for(uint32_t tensor) {
  const int64_t called = StepClock::now_ns();
  require(trestleGradWaitParam(grad_, static_cast<int>(tensor)));
  const int64_t returned = StepClock::now_ns();
  if (returned - called > kSleptNs) at_ns_ = std::max(at_ns_, returned);
}

void Replay::verify(uint32_t tensor) {
  if (verified_steps_ == spoil_ && tensor == 0 && gradients_.count(0) > 0) gradients_.tensor(0)[0] += 1;
  wrong_ += gradients_.compare(tensor, steps_ - 1);
}

void Replay::make_ready(uint32_t tensor) {
  const int64_t called = StepClock::now_ns();
  const trestleResult_t result = trestleGradReady(grad_, static_cast<int>(tensor), nullptr);
  const int64_t returned = StepClock::now_ns();
  require(result);
  ready_ns_.push_back(static_cast<double>(returned - called));
  late_sum_ns_ += static_cast<double>(std::max<int64_t>(called - at_ns_, 0));
}

void Replay::step(bool plain) {
  const auto count = static_cast<uint32_t>(workload_.tensors.size());
  const bool compares = std::exchange(pending_, compares_ && !plain);
  if (compares) ++verified_steps_;
  for (uint32_t i = 0; i < count; ++i) {
    // The first step may wait only while times are measured.
    if (any_step_ || plain) wait_for(i);
    if (compares) verify(i);
    at_ns_ += static_cast<int64_t>(1e9 * workload_.tensors[i].forward_s);
    clock_.wait_until(at_ns_);
  }
  for (uint32_t i = count; i-- > 0;) {
    // Also where results are not compared: a gradient that is never filled again grows from result to result.
    if (verified_ && !plain) gradients_.fill(i, steps_);
    at_ns_ += static_cast<int64_t>(1e9 * workload_.tensors[i].backward_s);
    clock_.wait_until(at_ns_);
    make_ready(i);
  }
  require(trestleGradStepEnd(grad_));
  end_ns_ = StepClock::now_ns();
  any_step_ = true;
  ++steps_;
}

void Replay::finish() {
  require(trestleGradSynchronize(grad_));
  if (!std::exchange(pending_, false)) return;
  ++verified_steps_;
  for (uint32_t i = 0; i < workload_.tensors.size(); ++i) verify(i);
}

}  // namespace trestle::perf
