#include "support/delayed_queue.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"

namespace trestle {

namespace {

constexpr int64_t kNoDeadlineNs = std::numeric_limits<int64_t>::max();
constexpr int64_t kNsPerSecond = 1'000'000'000;

UniqueFd make_bell() {
  return UniqueFd::open([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
}

void ring(const UniqueFd& bell) {
  const uint64_t one = 1;
  // A full counter means that the bell rings already.
  [[maybe_unused]] const ssize_t written = ::write(bell.get(), &one, sizeof one);
}

void silence(const UniqueFd& bell) {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = ::read(bell.get(), &count, sizeof count);
}

}  // namespace

void DelayedQueue::List::push(Work& work) {
  work.next = nullptr;
  (first == nullptr ? first : last->next) = &work;
  last = &work;
}

Work* DelayedQueue::List::pop() {
  Work* const work = first;
  if (work != nullptr) first = work->next;
  return work;
}

DelayedQueue::DelayedQueue(uint64_t seed, int64_t most_delay_ns)
    : most_delay_ns_(most_delay_ns), rng_(seed), submitted_bell_(make_bell()), ended_bell_(make_bell()) {}

Result<std::unique_ptr<DelayedQueue>> DelayedQueue::create(uint64_t seed, int64_t most_delay_ns) {
  std::unique_ptr<DelayedQueue> queue(new DelayedQueue(seed, most_delay_ns));
  if (!queue->submitted_bell_ || !queue->ended_bell_)
    return Error{Code::kSystemError, "no descriptors are left for a work queue (limit of open files: ulimit -n)"};
  queue->serves_ = true;
  auto started = Thread::start("delayed queue", [self = queue.get()] {
    self->serve();
    self->serves_.store(false, std::memory_order_release);
  });
  if (!started.ok()) {
    queue->serves_ = false;
    return std::move(started).error();
  }
  queue->thread_ = std::move(started).value();
  return queue;
}

void DelayedQueue::submit(Work& work) {
  work.state = WorkState::kSubmitted;
  {
    const MutexLock lock(mutex_);
    waiting_.push(work);
  }
  ring(submitted_bell_);
}

bool DelayedQueue::poll() {
  if (!any_ended_.load(std::memory_order_acquire)) return false;
  List ended;
  {
    const MutexLock lock(mutex_);
    std::swap(ended, ended_);
    any_ended_.store(false, std::memory_order_relaxed);
    silence(ended_bell_);
  }
  while (Work* const work = ended.pop()) {
    work->state = WorkState::kDone;
    if (work->touched != nullptr) *work->touched = true;
  }
  return true;
}

bool DelayedQueue::prepare_sleep() {
  return !any_ended_.load(std::memory_order_acquire);
}

void DelayedQueue::wait_until(int64_t due_ns) {
  pollfd bell{submitted_bell_.get(), POLLIN, 0};
  const int64_t left_ns = due_ns == kNoDeadlineNs ? 0 : std::max<int64_t>(0, due_ns - monotonic_clock().now_ns());
  const timespec left{left_ns / kNsPerSecond, left_ns % kNsPerSecond};
  ::ppoll(&bell, 1, due_ns == kNoDeadlineNs ? nullptr : &left, nullptr);
  silence(submitted_bell_);
}

// nullptr: the queue was closed.
Work* DelayedQueue::wait_for_work() {
  while (!closed_.load(std::memory_order_acquire)) {
    {
      const MutexLock lock(mutex_);
      if (Work* const work = waiting_.pop()) return work;
    }
    wait_until(kNoDeadlineNs);
  }
  return nullptr;
}

void DelayedQueue::serve() {
  while (Work* const work = wait_for_work()) {
    const auto delay_ns = static_cast<int64_t>(rng_.below(static_cast<uint64_t>(most_delay_ns_) + 1));
    const int64_t due_ns = monotonic_clock().now_ns() + delay_ns;
    while (!closed_.load(std::memory_order_acquire) && monotonic_clock().now_ns() < due_ns) wait_until(due_ns);
    if (closed_.load(std::memory_order_acquire)) return;
    work->result = do_work(*work);
    {
      const MutexLock lock(mutex_);
      ended_.push(*work);
      any_ended_.store(true, std::memory_order_release);
      ring(ended_bell_);
    }
  }
}

bool DelayedQueue::close(int64_t give_up_ns) {
  closed_.store(true, std::memory_order_release);
  ring(submitted_bell_);
  while (serves_.load(std::memory_order_acquire)) {
    if (monotonic_clock().now_ns() >= give_up_ns) return false;
    ::poll(nullptr, 0, 1);
  }
  thread_.join();
  return true;
}

}  // namespace trestle
