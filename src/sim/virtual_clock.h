// VirtualClock: time that only moves when the simulator moves it. One thread.
#pragma once

#include "base/check.h"
#include "base/clock.h"

namespace trestle {

class VirtualClock : public Clock {
 public:
  int64_t now_ns() override { return now_ns_; }
  void advance_to(int64_t time_ns) {
    CHECK(time_ns >= now_ns_, "virtual time would go back");
    now_ns_ = time_ns;
  }

 private:
  int64_t now_ns_ = 0;
};

}  // namespace trestle
