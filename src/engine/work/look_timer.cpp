#include "engine/work/look_timer.h"

#include <sys/timerfd.h>

#include <algorithm>

#include "base/clock.h"

namespace trestle {

namespace {

constexpr int64_t kSpinNs = 20'000;
constexpr int64_t kMostDelayNs = 1'000'000;
constexpr int64_t kDelayShare = 4;

}  // namespace

Status LookTimer::open() {
  timer_ = UniqueFd::open([] { return ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC); });
  if (timer_) return {};
  return Error{Code::kSystemError, "no descriptors are left for a work queue (limit of open files: ulimit -n)"};
}

void LookTimer::moved() {
  moved_ns_ = monotonic_clock().now_ns();
}

bool LookTimer::may_sleep() const {
  return monotonic_clock().now_ns() - moved_ns_ >= kSpinNs;
}

void LookTimer::prepare(bool waits) {
  asleep_ = true;
  if (!waits) return;
  const int64_t waited_ns = monotonic_clock().now_ns() - moved_ns_;
  arm(std::clamp(waited_ns / kDelayShare, kLeastDelayNs, kMostDelayNs));
}

void LookTimer::finish() {
  asleep_ = false;
  if (armed_) arm(0);
}

// 0: it does not ring, and what it rang is forgotten.
void LookTimer::arm(int64_t delay_ns) {
  armed_ = delay_ns != 0;
  itimerspec when{};
  when.it_value.tv_nsec = delay_ns;
  (void)::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace trestle
