#include "engine/run/patience.h"

#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/cpu/cpu_pause.h"

namespace trestle {

namespace {

constexpr int kLeastLooks = 50;
constexpr int kMostTimesLooks = 4;  // times the initial limit
constexpr int kFirstPenalty = 64;   // waits without yields after a long yield
constexpr int kMostPenalty = 4096;

}  // namespace

void Patience::ended(int looks, bool slept) {
  if (!limits_.learns) return;
  const int before = this->looks();
  int after = before;
  if (slept) {
    after = std::max(std::min(kLeastLooks, limits_.looks), before - before / 4);
  } else if (looks > before / 2) {
    after = std::min(before * 2, limits_.looks * kMostTimesLooks);
  } else {
    after += (limits_.looks - before) / 8;
  }
  if (after != before) looks_.store(after, std::memory_order_relaxed);
}

bool Patience::may_yield() {
  const int left = waits_without_yields_.load(std::memory_order_relaxed);
  if (left == 0) return true;
  waits_without_yields_.store(left - 1, std::memory_order_relaxed);
  return false;
}

void Patience::yield_was_long() {
  const int penalty = std::max(next_penalty_.load(std::memory_order_relaxed), kFirstPenalty);
  waits_without_yields_.store(penalty, std::memory_order_relaxed);
  next_penalty_.store(std::min(penalty * 2, kMostPenalty), std::memory_order_relaxed);
}

void Pause::use(Patience& patience) {
  if (patience_ == &patience) return;
  *this = Pause(patience);
}

Pause::Pass Pause::next() {
  const PatienceLimits& limits = patience_->limits();
  if (looks_ == 0) {
    limit_ = patience_->looks();
    yields_ = limits.yields;
  }
  ++looks_;
  if (looks_ == std::min(limits.looks_per_yield, limit_) && !patience_->may_yield()) yields_ = 0;
  if (should_sleep()) {
    slept_ = true;
    return Pass::kSleep;
  }
  const bool look = looks_ < limit_ && (yields_ == 0 || looks_ % limits.looks_per_yield != 0);
  return look ? Pass::kLook : Pass::kYield;
}

void Pause::yielded(int64_t ns) {
  if (ns < kLongYieldNs || !patience_->limits().learns) return;
  should_sleep_ = true;
  patience_->yield_was_long();
}

bool Pause::pass() {
  switch (next()) {
    case Pass::kLook:
      cpu_pause();
      return true;
    case Pass::kYield: {
      const int64_t before = monotonic_clock().now_ns();
      ::sched_yield();
      yielded(monotonic_clock().now_ns() - before);
      return true;
    }
    default:
      return false;
  }
}

void Pause::moved() {
  if (looks_ == 0) return;
  patience_->ended(looks_, slept_);
  looks_ = 0;
  should_sleep_ = false;
  slept_ = false;
}

}  // namespace trestle
