#include "perf/train_step/step_clock.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "perf/driver/ending.h"

namespace trestle::perf {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

void must(bool fine, const char* call) {
  if (!fine) fail(kExitInternal, std::string(call) + ": " + std::strerror(errno));
}

}  // namespace

StepClock::StepClock() : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  must(timer_ >= 0, "timerfd_create");
}

StepClock::~StepClock() {
  close(timer_);
}

int64_t StepClock::now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

void StepClock::wait_until(int64_t time_ns) const {
  if (now_ns() >= time_ns) return;
  itimerspec when{};
  when.it_value = {time_ns / kSecond, time_ns % kSecond};
  must(timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr) == 0, "timerfd_settime");
  uint64_t times = 0;
  ssize_t got = 0;
  do {
    got = read(timer_, &times, sizeof times);
  } while (got < 0 && errno == EINTR);
  must(got == sizeof times, "read of a timer");
}

}  // namespace trestle::perf
