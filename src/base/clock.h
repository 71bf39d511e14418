// Clock: the source of time. Everything that measures or waits takes a Clock, so that a simulation can substitute a
// virtual one.
//
// Owned by the process (the monotonic clock) or by the simulator (its own). Any thread may call now_ns().
#pragma once

#include <cstdint>
#include <string>

namespace trestle {

inline constexpr int64_t kMs = 1'000'000;  // in nanoseconds
inline constexpr int64_t kSecond = 1'000'000'000;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() = 0;  // nanoseconds since an arbitrary fixed moment; never goes back
};

// CLOCK_MONOTONIC; lives as long as the process.
Clock& monotonic_clock();

// "1.5 s ago", for messages; a negative time counts as 0.
std::string ago(int64_t time_ns);

}  // namespace trestle
