// Bell: wakes threads that wait for one of several things. Ringing makes a system call only if a thread sleeps that no
// ring has woken yet. Any thread; not between processes.
//
//   for (;;) { const uint32_t before = bell.count(); if (look()) break; bell.wait(before); }
//
// A thread that knows that a ring will come may doze instead of sleeping. A nudge does not wake a thread that dozes, so
// it costs no system call then.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace trestle {

// On a cache line of its own, because all sides write it.
class alignas(64) Bell {
 public:
  uint32_t count() const { return word_.load(std::memory_order_acquire) / kOne; }
  // Wakes all that sleep or doze.
  void ring() { count_up(kSleeps | kDozes); }
  // Wakes all that sleep.
  void nudge() { count_up(kSleeps); }
  // Sleeps until a ring or a nudge has come since count() returned `before`.
  void wait(uint32_t before) { wait_as(kSleeps, before); }
  // wait(), but a nudge that comes while the thread dozes does not end this wait. The next ring does.
  void doze(uint32_t before) { wait_as(kDozes, before); }

 private:
  static constexpr uint32_t kSleeps = 1;  // a thread sleeps, or is about to
  static constexpr uint32_t kDozes = 2;   // or dozes
  static constexpr uint32_t kOne = 4;     // of the count

  void count_up(uint32_t wakes) {
    uint32_t before = word_.load(std::memory_order_relaxed);
    uint32_t after = 0;
    do {
      // A wake-up wakes all threads, so it clears both bits. Without a wake-up the bits stay.
      after = before + kOne;
      if ((before & wakes) != 0) after &= ~(kSleeps | kDozes);
    } while (!word_.compare_exchange_weak(before, after, std::memory_order_acq_rel));
    if ((before & wakes) != 0) call(FUTEX_WAKE_PRIVATE, INT_MAX);
  }
  void wait_as(uint32_t bit, uint32_t before) {
    for (;;) {
      uint32_t now = word_.load(std::memory_order_acquire);
      if (now / kOne != before) return;
      // Sets the bit only while the count is the same. So the ring sees the sleeper, or the sleeper sees the ring.
      if ((now & bit) == 0 && !word_.compare_exchange_weak(now, now | bit, std::memory_order_acq_rel)) continue;
      call(FUTEX_WAIT_PRIVATE, now | bit);
    }
  }
  // The result does not matter: callers look at the word.
  void call(int operation, uint32_t value) {
    (void)::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word_), operation, value, nullptr, nullptr, 0);
  }

  std::atomic<uint32_t> word_{0};
};

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the system reads it");

}  // namespace trestle
