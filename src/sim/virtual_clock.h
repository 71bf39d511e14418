// VirtualClock: time that only the simulator moves. It counts picoseconds, because a segment takes only a few
// nanoseconds at 1 Tbit/s. One thread moves it; any may read it.
#pragma once

#include <atomic>

#include "base/check.h"
#include "base/clock.h"

namespace trestle {

class VirtualClock : public Clock {
 public:
  int64_t now_ns() override { return static_cast<int64_t>(now_ps() / 1000); }
  uint64_t now_ps() const { return now_ps_.load(std::memory_order_relaxed); }
  void advance_to(int64_t time_ns) { advance_to_ps(static_cast<uint64_t>(time_ns) * 1000); }
  void advance_to_ps(uint64_t time_ps) {
    CHECK(time_ps >= now_ps(), "virtual time would go back");
    now_ps_.store(time_ps, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> now_ps_{0};
};

}  // namespace trestle
