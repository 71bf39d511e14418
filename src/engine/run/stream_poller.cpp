#include "engine/run/stream_poller.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fork.h"
#include "engine/run/engine.h"
#include "engine/run/stream.h"

namespace trestle {

namespace {

constexpr int64_t kNapsPerWait = 16;       // so naps add a sixteenth to a wait
constexpr int64_t kShortestNapNs = 2'000;  // a shorter wait is spent looking
constexpr int64_t kLongestNapNs = 200'000;
constexpr int64_t kDoubtNs = 100'000'000;  // nothing has moved for so long: the devices may have failed

void ring_bell(const UniqueFd& bell) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell.get(), &one, sizeof one);
}

// Until the bell rings; timeout_ns < 0: without end.
void sleep_at(const UniqueFd& bell, int64_t timeout_ns) {
  pollfd fd{bell.get(), POLLIN, 0};
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  ::ppoll(&fd, 1, timeout_ns < 0 ? nullptr : &timeout, nullptr);
  uint64_t count;
  while (::read(bell.get(), &count, sizeof count) > 0) {
  }
}

Result<UniqueFd> make_bell() {
  UniqueFd bell = UniqueFd::open([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
  if (!bell) return Error{Code::kSystemError, std::string("eventfd: ") + std::strerror(errno)};
  return bell;
}

}  // namespace

StreamPoller& StreamPoller::process() {
  static constinit PerProcess<StreamPoller> poller;
  return poller.get();
}

StreamPoller::~StreamPoller() {
  stop_.store(true);
  for (const UniqueFd* const bell : {&bell_, &check_bell_}) {
    if (*bell) ring_bell(*bell);
  }
  looker_.join();
  checker_.join();
}

Status StreamPoller::add(const std::shared_ptr<Stream>& stream) {
  const MutexLock lock(mutex_);
  std::erase_if(streams_, [](const std::weak_ptr<Stream>& one) { return one.expired(); });
  TRY(start());
  streams_.push_back(stream);
  return {};
}

Status StreamPoller::start() {
  if (started_) return {};
  if (!bell_) bell_ = TRY(make_bell());
  if (!check_bell_) check_bell_ = TRY(make_bell());
  if (!looker_.joinable()) looker_ = TRY(Thread::start("stream poller", [this] { look_loop(); }));
  checker_ = TRY(Thread::start("stream poller", [this] { check_loop(); }));
  started_ = true;
  return {};
}

// A program may capture thousands of calls, so it looks for those that are gone only now and then.
void StreamPoller::add_place(const std::shared_ptr<Stream>& stream) {
  const MutexLock lock(mutex_);
  if (places_.size() >= 2 * places_seen_) {
    std::erase_if(places_, [](const std::weak_ptr<Stream>& one) { return one.expired(); });
    places_seen_ = std::max<size_t>(places_.size(), 64);
  }
  places_.push_back(stream);
}

void StreamPoller::let_go(const Engine* only, const Error& why) {
  std::vector<std::weak_ptr<Stream>> all;
  {
    const MutexLock lock(mutex_);
    all = streams_;
    all.insert(all.end(), places_.begin(), places_.end());
  }
  for (const std::weak_ptr<Stream>& one : all) {
    const auto stream = one.lock();
    if (stream == nullptr || !stream->can_be_let_go()) continue;
    for (const std::shared_ptr<Engine>& engine : stream->engines()) {
      if (only == nullptr || engine.get() == only) engine->fail(why);
    }
    stream->let_outer_go(only, why);
  }
}

void StreamPoller::ring() {
  if (asleep_.exchange(false, std::memory_order_seq_cst)) ring_bell(bell_);
}

void StreamPoller::leave(Errand& errand) {
  if (errand.is_left_.exchange(true, std::memory_order_acq_rel)) return;
  errand.self_ = errand.shared_from_this();
  errand.next_ = errands_.load(std::memory_order_relaxed);
  while (!errands_.compare_exchange_weak(errand.next_, &errand, std::memory_order_acq_rel)) {
  }
  ring_bell(bell_);
}

bool StreamPoller::run_errands() {
  Errand* first = nullptr;
  for (Errand* errand = errands_.exchange(nullptr, std::memory_order_acq_rel); errand != nullptr;) {
    Errand* const next = std::exchange(errand->next_, first);
    first = std::exchange(errand, next);
  }
  if (first == nullptr) return false;
  while (first != nullptr) {
    const std::shared_ptr<Errand> errand = std::move(first->self_);
    first = first->next_;
    // Acquires the changes before a leave() that found the errand left already.
    errand->is_left_.exchange(false, std::memory_order_acq_rel);
    errand->run();
  }
  return true;
}

void StreamPoller::collect(Waiting& waiting) {
  const MutexLock lock(mutex_);
  for (const std::weak_ptr<Stream>& one : streams_) {
    if (auto stream = one.lock(); stream != nullptr && stream->waits_for_outer()) waiting.push_back(std::move(stream));
  }
}

// True if all of them still wait.
bool StreamPoller::ask(const Waiting& waiting) {
  bool all = true;
  for (const std::shared_ptr<Stream>& stream : waiting) {
    stream->ask_outer();
    all = stream->waits_for_outer() && all;
  }
  return all;
}

// A stream that begins to wait after the look rings, because it finds the thread asleep.
void StreamPoller::look_loop() {
  Clock& clock = monotonic_clock();
  int64_t since_ns = clock.now_ns();
  int64_t doubted_ns = since_ns;
  Waiting waiting;
  while (!stop_.load()) {
    asleep_.store(true, std::memory_order_seq_cst);
    if (run_errands()) since_ns = doubted_ns = clock.now_ns();
    collect(waiting);
    if (waiting.empty()) {
      sleep_at(bell_, -1);
      since_ns = doubted_ns = clock.now_ns();
      continue;
    }
    asleep_.store(false, std::memory_order_seq_cst);
    const bool all_wait = ask(waiting);
    waiting.clear();
    const int64_t now_ns = clock.now_ns();
    if (!all_wait) since_ns = doubted_ns = now_ns;
    if (now_ns - doubted_ns >= kDoubtNs) {
      ring_bell(check_bell_);
      doubted_ns = now_ns;
    }
    const int64_t nap_ns = std::min(kLongestNapNs, (now_ns - since_ns) / kNapsPerWait);
    if (nap_ns >= kShortestNapNs) sleep_at(bell_, nap_ns);
  }
}

void StreamPoller::check_loop() {
  Waiting waiting;
  while (!stop_.load()) {
    collect(waiting);
    for (const std::shared_ptr<Stream>& stream : waiting) stream->check_outer();
    waiting.clear();
    sleep_at(check_bell_, -1);
  }
}

}  // namespace trestle
