// Bell: wakes threads that wait for one of several things. Ringing makes a system call only if a thread sleeps that no
// ring has woken yet. Any thread; not between processes.
//
//   for (;;) { const uint32_t before = bell.count(); if (look()) break; bell.wait(before); }
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace trestle {

// On a cache line of its own: it is written by all sides.
class alignas(64) Bell {
 public:
  uint32_t count() const { return word_.load(std::memory_order_acquire) / kOne; }
  void ring() {
    uint32_t before = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(before, (before + kOne) & ~kSleeps, std::memory_order_acq_rel)) {
    }
    if ((before & kSleeps) != 0) call(FUTEX_WAKE_PRIVATE, INT_MAX);
  }
  // Until it has rung since count() returned `before`.
  void wait(uint32_t before) {
    for (;;) {
      uint32_t now = word_.load(std::memory_order_acquire);
      if (now / kOne != before) return;
      // Only while the count is still the same. So a ring sees the sleeper, or the sleeper sees the ring.
      if ((now & kSleeps) == 0 && !word_.compare_exchange_weak(now, now | kSleeps, std::memory_order_acq_rel)) continue;
      call(FUTEX_WAIT_PRIVATE, now | kSleeps);
    }
  }

 private:
  static constexpr uint32_t kSleeps = 1;  // a thread sleeps, or is about to
  static constexpr uint32_t kOne = 2;     // of the count
  // What comes back does not matter: the word says it.
  void call(int operation, uint32_t value) {
    (void)::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word_), operation, value, nullptr, nullptr, 0);
  }

  std::atomic<uint32_t> word_{0};
};

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the system reads it");

}  // namespace trestle
