// LookTimer: wakes a sleeper who waits for a device. A device writes a word and rings no bell, so the sleeper looks now
// and then. The delay is a quarter of the time since something moved, but 20 us at least and 1 ms at most: the sleeper
// is late by a quarter of the work's time, and costs little while work is held for long. For a short while after the
// last movement there is no sleep at all.
//
// Owned by what the engine polls (engine/work/polled.h); threads as there.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

class LookTimer {
 public:
  // Error: no descriptors are left.
  Status open();
  int fd() const { return timer_.get(); }

  // Something was begun, or has ended.
  void moved();
  // Whether the last movement is so long ago that a thread may sleep.
  bool may_sleep() const;
  // The thread is about to sleep. waits: for the device.
  void prepare(bool waits);
  void finish();
  // Something was begun while the thread sleeps, which was told that there is nothing to wait for.
  void begin_beside_sleeper() {
    if (asleep_) arm(kLeastDelayNs);
  }

 private:
  static constexpr int64_t kLeastDelayNs = 20'000;
  void arm(int64_t delay_ns);

  UniqueFd timer_;
  bool asleep_ = false;
  bool armed_ = false;
  int64_t moved_ns_ = 0;
};

}  // namespace trestle
