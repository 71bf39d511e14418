// Clock: where time comes from. Everything that measures or waits takes a Clock, so that a simulation can substitute a
// virtual one.
//
// Owned by whoever drives time (the process for the monotonic clock, the simulator for its own); now_ns() may be called
// from any thread.
#pragma once

#include <cstdint>

namespace trestle {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() = 0;  // nanoseconds since an arbitrary fixed moment; never goes back
};

// CLOCK_MONOTONIC; lives as long as the process.
Clock& monotonic_clock();

}  // namespace trestle
