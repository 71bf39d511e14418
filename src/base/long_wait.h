// LongWait: how long something has stood where it stands, and when that is worth a line in the log (base/wait_marks.h).
// What moves is in no wait, however long it takes. A value of whoever waits.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/wait_marks.h"

namespace trestle {

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
