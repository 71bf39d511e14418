// WaitMarks: when a wait is worth a line in the log, 10, 30 and 60 s after it has begun, once each. A value of whoever
// waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

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

// How long something has stood where it stands. What moves is in no wait, however long it takes. A value of whoever
// waits.
class LongWait {
 public:
  // Whether look() is to be called: once a second, because it takes a text.
  bool is_due(int64_t now_ns) const { return now_ns >= next_look_ns_; }
  // `at`: where it stands; "": there is nothing that waits. Returns the seconds of the mark that has passed; 0: none.
  int64_t look(std::string at, int64_t now_ns) {
    next_look_ns_ = now_ns + kSecond;
    if (at != at_) {
      at_ = std::move(at);
      marks_ = WaitMarks(now_ns);
    }
    return at_.empty() ? 0 : marks_.passed(now_ns);
  }
  const std::string& at() const { return at_; }

 private:
  std::string at_;
  WaitMarks marks_{0};
  int64_t next_look_ns_ = 0;
};

}  // namespace trestle
