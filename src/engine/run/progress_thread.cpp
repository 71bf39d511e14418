#include "engine/run/progress_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/cpu/numa.h"
#include "base/host.h"
#include "base/log.h"
#include "engine/run/patience.h"

namespace trestle {

namespace {

constexpr int64_t kSleepNs = 100'000'000;        // how often it checks deadlines while it sleeps at engines
constexpr int64_t kUndrivenNs = 50'000;          // it takes an engine with work that no thread drove for this long
constexpr int64_t kCrowdedUndrivenNs = 200'000;  // this long where its caller may have to wait for a processor
constexpr int kLongestWatch = 8;                 // in units of that time
constexpr int kWatchAfterWork = 40;              // in units of that time; then it sleeps until the bell rings
constexpr int64_t kSliceNs = 5'000'000;          // a caller may lose its processor for this long
constexpr int64_t kSoonNs = 100'000;             // a caller that waits this soon after its call needs no helper

int64_t undriven_ns(bool crowded) {
  return crowded ? kCrowdedUndrivenNs : kUndrivenNs;
}

// The calling thread's own processor time. A thread that lost its processor comes late without wanting to.
int64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// When the calling thread last started work while callers_do_not_wait_ was set, in its own time and by the clock of
// Engine::issued_ns(). -1: never. Of calls in a row it may be an earlier one, issued less than kSoonNs before: the
// thread's own time takes a system call.
thread_local int64_t unwaited_at_ns = -1;
thread_local int64_t unwaited_issue_ns = -1;

void note_unwaited(const Engine& engine) {
  const int64_t issued_ns = engine.issued_ns();
  if (engine.pending() > 1 && unwaited_at_ns >= 0 && issued_ns - unwaited_issue_ns < kSoonNs) return;
  unwaited_at_ns = thread_time_ns();
  unwaited_issue_ns = issued_ns;
}

// Looks and yields before a sleep: follows TRESTLE_SPIN, and small where ranks outnumber processors.
int looks_of(Engine& engine) {
  const PatienceLimits& limits = engine.patience().limits();
  return limits.looks + limits.yields;
}

}  // namespace

void ProgressThread::stop() {
  stop_.store(true);
  if (thread_.joinable()) {
    ring();
    thread_.join();
  }
}

Status ProgressThread::start() {
  const MutexLock lock(mutex_);
  if (started_) return {};
  bell_ = UniqueFd::open([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
  if (!bell_) return Error{Code::kSystemError, std::string("eventfd: ") + std::strerror(errno)};
  thread_ = TRY(Thread::start("helper", [this] { loop(); }));
  started_ = true;
  return {};
}

std::shared_ptr<const EngineList> ProgressThread::engines() const {
  const MutexLock lock(mutex_);
  return engines_;
}

void ProgressThread::add(const std::shared_ptr<Engine>& engine) {
  const MutexLock lock(mutex_);
  engines_ = with_engine(*engines_, engine);
}

void ProgressThread::remove(const Engine* engine) {
  {
    const MutexLock lock(mutex_);
    engines_ = without_engine(*engines_, engine);
  }
  ring_sleeper();  // it may hold the engine
}

void ProgressThread::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

// Where a thread sleeps at the engine, it is the helper or a waiter. It drives the engine when it wakes, and a waiter
// that leaves work behind tells the helper (work_started()). A sleeper that has just woken sees the call before it
// sleeps again.
//
// note_unwaited() is then left out. The note only helps to find out whether callers come to wait. An older note makes
// their calls seem longer ago. Then the helper may drive at once although it need not, but it never leaves an engine
// alone.
void ProgressThread::call_issued(const Engine& engine) {
  if (!duties_.drive()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // it sees the call, or is seen asleep, here or below
  if (engine.sleepers() != 0) return;
  const bool callers_do_not_wait = callers_do_not_wait_.load(std::memory_order_relaxed);
  if (callers_do_not_wait) note_unwaited(engine);
  ring_if_needed(callers_do_not_wait);
}

void ProgressThread::work_started() {
  if (!duties_.drive()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // it sees the work, or is seen asleep
  const bool callers_do_not_wait = callers_do_not_wait_.load(std::memory_order_relaxed);
  if (callers_do_not_wait) unwaited_at_ns = thread_time_ns();
  ring_if_needed(callers_do_not_wait);
}

// A deep sleeper must always be rung. Otherwise it looks soon by itself, and is rung only if callers do not wait. The
// thread that finds it asleep takes the mark away. Until the helper wakes, which takes microseconds, no other thread
// needs to ring: before it sleeps again, the helper looks at all that was started meanwhile.
void ProgressThread::ring_if_needed(bool callers_do_not_wait) {
  auto& asleep = callers_do_not_wait ? asleep_ : deep_asleep_;
  if (asleep.load(std::memory_order_seq_cst) && asleep.exchange(false, std::memory_order_seq_cst)) ring();
}

void ProgressThread::waited_for(const Engine& engine) {
  if (!callers_do_not_wait_.load(std::memory_order_relaxed)) return;
  const int64_t since_ns = monotonic_clock().now_ns() - engine.issued_ns();
  const bool without_processor =
      (engine.crowded() || since_ns < kSliceNs) && unwaited_at_ns >= 0 && thread_time_ns() - unwaited_at_ns < kSoonNs;
  const bool soon = since_ns < kSoonNs || without_processor;
  if (soon) callers_do_not_wait_.store(false, std::memory_order_relaxed);
}

// It sees everything done before this call, or is seen asleep.
void ProgressThread::ring_sleeper() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) ring();
}

// ---- the thread

// True if callers are not expected to come and wait.
bool ProgressThread::drives_at_once() const {
  return duties_.notifications.expected() || (duties_.always && callers_do_not_wait_.load(std::memory_order_relaxed));
}

bool ProgressThread::round(int64_t now_ns, Driven& driven) {
  const Driven before = std::exchange(driven, {});
  if (!duties_.drive()) return false;
  const bool idle_too = duties_.idle_drives.load(std::memory_order_relaxed) != 0;
  const bool at_once = drives_at_once();
  bool moved = false;
  const auto all = engines();
  for (const auto& one : *all) {
    auto engine = one.lock();
    if (engine == nullptr) continue;
    const bool busy = engine->busy();
    if (engine->has_waiters() || (!busy && !idle_too)) continue;
    const bool mine = at_once || std::find(before.begin(), before.end(), engine) != before.end();
    if (busy && !mine && now_ns - engine->last_driven_ns() < undriven_ns(engine->crowded())) continue;
    bool went_on = false;
    for (bool goes_on = mine ? engine->try_progress() : engine->help(); goes_on; goes_on = engine->try_progress()) {
      went_on = true;
      if (engine->has_waiters() || notifications_due()) break;
    }
    moved |= went_on;
    if (busy || went_on) driven.push_back(std::move(engine));
  }
  return moved;
}

bool ProgressThread::anything_to_drive(const Driven& but_these) const {
  if (duties_.idle_drives.load(std::memory_order_seq_cst) != 0) return true;
  if (!duties_.drive()) return false;
  const auto all = engines();
  return std::any_of(all->begin(), all->end(), [&but_these](const auto& one) {
    const auto engine = one.lock();
    return engine != nullptr && engine->busy() && !engine->has_waiters() &&
           std::find(but_these.begin(), but_these.end(), engine) == but_these.end();
  });
}

// Calls that were waited for count as work too: the next call may not be waited for, and ringing for each call would
// cost its caller more.
int64_t ProgressThread::note_last_issue() {
  bool crowded = false;
  const auto all = engines();
  for (const auto& one : *all) {
    const auto engine = one.lock();
    if (engine == nullptr) continue;
    last_work_ns_ = std::max(last_work_ns_, engine->issued_ns());
    crowded |= engine->crowded();
  }
  return undriven_ns(crowded);
}

// Work that started after the thread looked is seen here, or the starting thread sees it asleep.
int64_t ProgressThread::timeout_ns(const Driven& driven, int64_t now_ns) {
  asleep_.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (notifications_due() || stop_.load()) return 0;
  const bool others = anything_to_drive(driven);
  if (others && drives_at_once() && duties_.idle_drives.load() == 0) return 0;
  const int64_t undriven = note_last_issue();
  if (others) last_work_ns_ = now_ns;
  watch_ns_ = driven.empty() && !others ? std::min(watch_ns_ * 2, kLongestWatch * undriven) : undriven;
  const bool on_alert = duties_.drive() && driven.empty() && now_ns - last_work_ns_ <= kWatchAfterWork * undriven;
  if (others || on_alert) return watch_ns_;
  deep_asleep_.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (anything_to_drive(driven)) return undriven;
  return driven.empty() ? INT64_MAX : kSleepNs;
}

// Sleeps until the bell rings, a driven engine can go on, or a waiter comes to one.
void ProgressThread::sleep(const Driven& driven, int64_t timeout_ns) {
  std::vector<pollfd> fds;
  std::vector<std::pair<Engine*, Engine::Sleep>> asleep_at;
  fds.reserve(2 * driven.size() + 1);
  asleep_at.reserve(driven.size());
  fds.push_back({bell_.get(), POLLIN, 0});
  for (const auto& engine : driven) {
    const Engine::Sleep sleep = engine->set_helper_asleep(true) ? engine->begin_sleep() : Engine::Sleep{};
    timeout_ns = std::min(timeout_ns, int64_t{sleep.most_ms} * 1'000'000);
    if (sleep.state != Engine::Sleep::State::kBegun) continue;
    asleep_at.emplace_back(engine.get(), sleep);
    for (const pollfd& fd : engine->sleep_fds()) fds.push_back(fd);
  }
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  ::ppoll(fds.data(), fds.size(), timeout_ns == INT64_MAX ? nullptr : &timeout, nullptr);
  for (const auto& engine : driven) engine->set_helper_asleep(false);
  for (const auto& [engine, sleep] : asleep_at) engine->end_sleep(sleep);
  asleep_.store(false, std::memory_order_seq_cst);
  deep_asleep_.store(false, std::memory_order_seq_cst);
  uint64_t count;
  while (::read(bell_.get(), &count, sizeof count) > 0) {
  }
}

// Goes to its processors, and tells the log where it runs.
void ProgressThread::settle() {
  if (!place_.processors.empty()) (void)bind_thread(place_.processors);
  if (!log_enabled(LogLevel::kInfo, Subsystem::kInit)) return;
  const std::string processors = processors_text(processors_of(usable_cpu_mask()));
  const std::string node = place_.nodes.empty() ? ""
                                                : (place_.nodes.size() == 1 ? " of NUMA node " : " of NUMA nodes ") +
                                                      processors_text(place_.nodes);
  LOG(kInfo, kInit, "helper thread %zu on processors %s%s; %s", place_.number, processors.c_str(), node.c_str(),
      place_.of.c_str());
}

// The thread has a Patience of its own. On a processor that it shares with a computing thread its yields take long, and
// waiters should not learn from that.
void ProgressThread::loop() {
  settle();
  Patience patience({.learns = false});
  Pause pause(patience);
  Driven driven;
  watch_ns_ = kUndrivenNs;
  last_work_ns_ = monotonic_clock().now_ns();
  while (!stop_.load()) turn(pause, driven);
}

// Drives, runs notifications, or sleeps.
void ProgressThread::turn(Pause& pause, Driven& driven) {
  const int64_t now = monotonic_clock().now_ns();
  const bool at_once = drives_at_once();
  const bool moved = round(now, driven);
  if (!driven.empty()) last_work_ns_ = now;
  if (moved && !at_once && duties_.idle_drives.load(std::memory_order_relaxed) == 0)
    callers_do_not_wait_.store(true, std::memory_order_relaxed);
  if (notifications_due()) {
    driven.clear();  // their engines may end while the functions run
    return duties_.notifications.run();
  }
  if (moved) pause.moved();
  if (moved || (!driven.empty() && pause.looks() < looks_of(*driven.front()) && pause.pass())) return;
  sleep(driven, timeout_ns(driven, now));
}

}  // namespace trestle
