#include "engine/run/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/clock.h"

namespace trestle {

Watch::~Watch() {
  stop_.store(true);
  if (thread_.joinable()) {
    ring();
    thread_.join();
  }
}

Status Watch::add(std::shared_ptr<Pollable> pollable) {
  {
    const MutexLock lock(start_mutex_);
    TRY(start());
  }
  {
    const MutexLock lock(pollables_mutex_);
    pollables_.push_back(std::move(pollable));
  }
  ring();
  return {};
}

void Watch::remove(const Pollable* pollable) {
  const MutexLock lock(pollables_mutex_);
  std::erase_if(pollables_, [pollable](const auto& p) { return p.get() == pollable; });
}

Status Watch::start() {
  if (started_) return {};
  bell_ = UniqueFd::open([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
  if (!bell_) return Error{Code::kSystemError, std::string("eventfd: ") + std::strerror(errno)};
  thread_ = TRY(Thread::start("watch", [this] { loop(); }));
  started_ = true;
  return {};
}

void Watch::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

// Returns when the next pollable is due; INT64_MAX: never.
int64_t Watch::poll_all(int64_t now_ns) {
  const MutexLock lock(pollables_mutex_);
  int64_t due_ns = INT64_MAX;
  for (const auto& pollable : pollables_) {
    pollable->poll(now_ns);
    due_ns = std::min(due_ns, pollable->next_due_ns());
  }
  return due_ns;
}

void Watch::sleep(int64_t timeout_ns) {
  std::vector<pollfd> fds;
  fds.push_back({bell_.get(), POLLIN, 0});
  {
    const MutexLock lock(pollables_mutex_);
    for (const auto& pollable : pollables_) fds.push_back({pollable->event_fd(), POLLIN, 0});
  }
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  ::ppoll(fds.data(), fds.size(), timeout_ns == INT64_MAX ? nullptr : &timeout, nullptr);
  uint64_t count;
  while (::read(bell_.get(), &count, sizeof count) > 0) {
  }
}

void Watch::loop() {
  Clock& clock = monotonic_clock();
  while (!stop_.load()) {
    const int64_t now_ns = clock.now_ns();
    const int64_t due_ns = poll_all(now_ns);
    sleep(due_ns == INT64_MAX ? due_ns : std::max<int64_t>(0, due_ns - now_ns));
  }
}

}  // namespace trestle
