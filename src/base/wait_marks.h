// WaitMarks: when a wait is worth a line in the log, 10, 30 and 60 s after it has begun, once each. A value of whoever
// waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#include "base/clock.h"

namespace trestle {

class WaitMarks {
 public:
  explicit WaitMarks(int64_t began_ns) : began_ns_(began_ns) {}

  // Seconds of the mark that has passed since the last call; 0: none has. Of several the last one counts.
  int64_t passed(int64_t now_ns) {
    int64_t seconds = 0;
    while (next_ns() <= now_ns) seconds = kSeconds[next_++];
    return seconds;
  }
  int64_t next_ns() const {
    return next_ < std::size(kSeconds) ? began_ns_ + kSeconds[next_] * kSecond : std::numeric_limits<int64_t>::max();
  }

 private:
  static constexpr int64_t kSeconds[] = {10, 30, 60};
  int64_t began_ns_;
  size_t next_ = 0;
};

}  // namespace trestle
