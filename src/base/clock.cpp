#include "base/clock.h"

#include <algorithm>
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

std::string ago(int64_t time_ns) {
  const int64_t tenths = std::max<int64_t>(time_ns, 0) / 100'000'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s ago";
}

}  // namespace trestle
