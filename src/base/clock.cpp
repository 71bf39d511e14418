#include "base/clock.h"

#include <ctime>

#include "base/fork.h"

namespace trestle {
namespace {

class MonotonicClock final : public Clock {
 public:
  int64_t now_ns() override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }
};

}  // namespace

Clock& monotonic_clock() {
  static constinit PerProcess<MonotonicClock> clock;
  return clock.get();
}

}  // namespace trestle
