// StepClock: lets a thread sleep until an absolute time, so that the wakes' delays do not add up. It takes no processor
// time, as compute on an accelerator takes none.
//
// Used by one thread. Nanoseconds of CLOCK_MONOTONIC. A failed call ends the process (driver/ending.h).
#pragma once

#include <cstdint>

namespace trestle::perf {

class StepClock {
 public:
  StepClock();
  ~StepClock();
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;

  static int64_t now_ns();
  // Returns at once if the time has passed.
  void wait_until(int64_t time_ns) const;

 private:
  int timer_;
};

}  // namespace trestle::perf
