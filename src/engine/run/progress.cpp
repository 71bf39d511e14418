#include "engine/run/progress.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "base/config/config.h"
#include "base/fork.h"
#include "base/out_of_memory.h"
#include "engine/run/patience.h"

namespace trestle {

namespace {

constexpr int kOwnSleepMs = 100;         // how often a sleeping waiter checks deadlines
constexpr int kOthersSleepMs = 1;        // the same where no other thread drives the other engines
constexpr int64_t kUndrivenNs = 50'000;  // the helper takes an engine with work that no thread drove for this long
constexpr int64_t kCrowdedUndrivenNs = 200'000;  // the same where its caller may have to wait for a processor
constexpr int kLongestWatch = 8;                 // in units of that time
constexpr int kWatchAfterWork = 40;              // in units of that time; then it sleeps until the bell rings
constexpr int64_t kSliceNs = 5'000'000;          // a caller may lose its processor for this long
constexpr int64_t kSoonNs = 100'000;             // a caller that waits this soon after its call needs no helper

// For waits whose engine is not known.
Patience& common_patience() {
  static constinit PerProcess<Patience> patience;
  return patience.get([] { return Patience{PatienceLimits{.learns = false}}; });
}

constinit PerProcess<Progress> process_progress;

int64_t undriven_ns(bool crowded) {
  return crowded ? kCrowdedUndrivenNs : kUndrivenNs;
}

// The calling thread's own processor time. A thread that lost its processor comes late without wanting to.
int64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// The thread time at which the calling thread last started work while callers_do_not_wait_ was set; -1: never.
thread_local int64_t unwaited_at_ns = -1;

// Looks and yields before a sleep: follows TRESTLE_SPIN, and small where ranks outnumber processors.
int looks_of(Engine& engine) {
  const PatienceLimits& limits = engine.patience().limits();
  return limits.looks + limits.yields;
}

}  // namespace

// Never destroyed: other threads may wait in it while the process exits, and goodbyes are heard until the end.
Progress& Progress::process() {
  return process_progress.get([] { return Progress(process_config().progress_thread); });
}

Progress::~Progress() {
  stop_.store(true);
  if (helper_.joinable()) {
    ring();
    helper_.join();
  }
}

std::shared_ptr<const Progress::Engines> Progress::engines() const {
  const MutexLock lock(mutex_);
  return engines_;
}

Status Progress::add(std::shared_ptr<Engine> engine) {
  const MutexLock lock(mutex_);
  TRY(start_helper());
  auto next = std::make_shared<Engines>(*engines_);
  next->push_back(std::move(engine));
  engines_ = std::move(next);
  return {};
}

void Progress::remove(const Engine* engine) {
  const MutexLock lock(mutex_);
  auto next = std::make_shared<Engines>(*engines_);
  std::erase_if(*next, [engine](const auto& one) {
    const auto other = one.lock();
    return other == nullptr || other.get() == engine;
  });
  engines_ = std::move(next);
  ring_sleeper();  // the sleeping helper may hold the engine
}

Status Progress::start_helper() {
  if (helper_.joinable()) return {};
  bell_ = UniqueFd::open([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
  if (!bell_) return Error{Code::kSystemError, std::string("eventfd: ") + std::strerror(errno)};
  helper_ = TRY(Thread::start([this] { helper_loop(); }));
  return {};
}

void Progress::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

// A deeply sleeping helper must always be rung. Otherwise it looks soon by itself, and is rung only if callers do not
// wait.
void Progress::work_started() {
  if (!drives()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the helper sees the work, or is seen asleep
  const bool callers_do_not_wait = callers_do_not_wait_.load(std::memory_order_relaxed);
  if (callers_do_not_wait) unwaited_at_ns = thread_time_ns();
  const auto& asleep = callers_do_not_wait ? helper_asleep_ : helper_deep_asleep_;
  if (asleep.load(std::memory_order_seq_cst)) ring();
}

Status Progress::expect_notification() {
  {
    const MutexLock lock(mutex_);
    TRY(start_helper());
  }
  expected_notifications_.fetch_add(1, std::memory_order_seq_cst);
  ring_sleeper();
  return {};
}

void Progress::run_notification(std::function<void()> notification) {
  {
    const MutexLock lock(notifications_mutex_);
    notifications_.push_back(std::move(notification));
    notifications_wait_.store(true, std::memory_order_relaxed);
  }
  ring_sleeper();
}

// The helper sees everything done before this call, or is seen asleep.
void Progress::ring_sleeper() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (helper_asleep_.load(std::memory_order_seq_cst)) ring();
}

Progress::IdleDrive::IdleDrive() {
  process().idle_drives_.fetch_add(1, std::memory_order_seq_cst);
  process().ring_sleeper();
}

Progress::IdleDrive::~IdleDrive() {
  process().idle_drives_.fetch_sub(1, std::memory_order_seq_cst);
}

void Progress::waited_for(const Engine& engine) {
  if (!callers_do_not_wait_.load(std::memory_order_relaxed)) return;
  const int64_t since_ns = monotonic_clock().now_ns() - engine.issued_ns();
  const bool without_processor =
      (engine.crowded() || since_ns < kSliceNs) && unwaited_at_ns >= 0 && thread_time_ns() - unwaited_at_ns < kSoonNs;
  const bool soon = since_ns < kSoonNs || without_processor;
  if (soon) callers_do_not_wait_.store(false, std::memory_order_relaxed);
}

void Progress::poke(const std::shared_ptr<Engine>& tested) {
  const auto all = engines();
  for (const auto& one : *all) {
    if (const auto engine = one.lock()) engine->help();
  }
  if (tested != nullptr) tested->was_tested();
}

// Marks the engine that a waiting thread drives, so that the helper leaves it alone.
class Progress::WaiterMark {
 public:
  explicit WaiterMark(Progress& progress) : progress_(progress) {}
  ~WaiterMark() { move_to(nullptr); }
  WaiterMark(const WaiterMark&) = delete;
  WaiterMark& operator=(const WaiterMark&) = delete;
  void move_to(const std::shared_ptr<Engine>& engine) {
    if (engine == engine_) return;
    if (engine_ != nullptr) engine_->add_waiters(-1);
    if (engine_ != nullptr && engine_->busy()) progress_.work_started();
    if (engine != nullptr) engine->add_waiters(1);
    if (engine != nullptr) progress_.waited_for(*engine);
    engine_ = engine;
  }

 private:
  Progress& progress_;
  std::shared_ptr<Engine> engine_;
};

// Where the helper drives nothing, a thread that sleeps at its own engine must look after the others too: its own may
// wait for them.
int Progress::sleep_ms(const Engines& engines, const Engine* own) const {
  const bool others = !helper_drives_ && std::any_of(engines.begin(), engines.end(), [own](const auto& one) {
    const auto engine = one.lock();
    return engine != nullptr && engine.get() != own && engine->busy() && !engine->has_waiters();
  });
  return others ? kOthersSleepMs : kOwnSleepMs;
}

void Progress::wait(const std::function<bool()>& done, const std::function<std::shared_ptr<Engine>()>& own) {
  auto all = engines();
  Pause pause(common_patience());
  WaiterMark mark(*this);
  while (!done()) {
    const std::shared_ptr<Engine> mine = own();
    mark.move_to(mine);
    pause.use(mine != nullptr ? mine->patience() : common_patience());
    const bool drives_all = !helper_drives_ && pause.should_sleep();
    bool moved = mine != nullptr && mine->try_progress();
    if (!moved && (mine == nullptr || pause.looks() % 64 == 63 || drives_all)) {
      if (pause.looks() % 1024 == 1023 || drives_all) all = engines();
      for (const auto& one : *all) {
        const auto engine = one.lock();
        moved |= engine != nullptr && engine != mine && engine->help();
      }
    }
    if (moved) {
      pause.moved();
      continue;
    }
    if (pause.pass()) continue;
    if (done()) break;
    if (mine != nullptr) {
      mine->sleep(sleep_ms(*all, mine.get()), [&] { return done() || own() != mine; });
    } else {
      // The head waits for an event of another stream. The thread that drives that stream ends this wait.
      pollfd none{};
      ::poll(&none, 0, 1);
    }
  }
  pause.moved();
}

// ---- the helper thread

bool Progress::drives() const {
  return helper_drives_ || idle_drives_.load(std::memory_order_seq_cst) != 0 ||
         expected_notifications_.load(std::memory_order_seq_cst) != 0;
}

// True if callers are not expected to come and wait.
bool Progress::drives_at_once() const {
  return expected_notifications_.load(std::memory_order_seq_cst) != 0 ||
         (helper_drives_ && callers_do_not_wait_.load(std::memory_order_relaxed));
}

bool Progress::helper_round(int64_t now_ns, Driven& driven) {
  const Driven before = std::exchange(driven, {});
  if (!drives()) return false;
  const bool idle_too = idle_drives_.load(std::memory_order_relaxed) != 0;
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
      if (engine->has_waiters() || notifications_wait_.load(std::memory_order_relaxed)) break;
    }
    moved |= went_on;
    if (busy || went_on) driven.push_back(std::move(engine));
  }
  return moved;
}

bool Progress::anything_to_drive(const Driven& but_these) const {
  if (idle_drives_.load(std::memory_order_seq_cst) != 0) return true;
  if (!drives()) return false;
  const auto all = engines();
  return std::any_of(all->begin(), all->end(), [&but_these](const auto& one) {
    const auto engine = one.lock();
    return engine != nullptr && engine->busy() && !engine->has_waiters() &&
           std::find(but_these.begin(), but_these.end(), engine) == but_these.end();
  });
}

void Progress::run_notifications() {
  std::vector<std::function<void()>> notifications;
  {
    const MutexLock lock(notifications_mutex_);
    notifications.swap(notifications_);
    notifications_wait_.store(false, std::memory_order_relaxed);
  }
  for (const auto& notification : notifications) {
    // One that finds no memory keeps no other one from running.
    if (!exits_.load(std::memory_order_acquire)) unless_out_of_memory(notification, [] {});
    expected_notifications_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

// Calls that were waited for count as work too: the next call may not be waited for, and ringing for each call would
// cost its caller more.
int64_t Progress::note_last_issue() {
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

// Work that started after the helper looked is seen here, or the starting thread sees the helper asleep.
int64_t Progress::helper_timeout_ns(const Driven& driven, int64_t now_ns) {
  helper_asleep_.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  {
    const MutexLock lock(notifications_mutex_);
    if (!notifications_.empty() || stop_.load()) return 0;
  }
  const bool others = anything_to_drive(driven);
  if (others && drives_at_once() && idle_drives_.load() == 0) return 0;
  const int64_t undriven = note_last_issue();
  if (others) last_work_ns_ = now_ns;
  watch_ns_ = driven.empty() && !others ? std::min(watch_ns_ * 2, kLongestWatch * undriven) : undriven;
  const bool on_alert = drives() && driven.empty() && now_ns - last_work_ns_ <= kWatchAfterWork * undriven;
  if (others || on_alert) return watch_ns_;
  helper_deep_asleep_.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (anything_to_drive(driven)) return undriven;
  return driven.empty() ? INT64_MAX : int64_t{kOwnSleepMs} * 1'000'000;
}

// Sleeps until the bell rings, a driven engine can go on, or a waiter comes to one.
void Progress::helper_sleep(const Driven& driven, int64_t timeout_ns) {
  std::vector<pollfd> fds;
  std::vector<std::pair<Engine*, Engine::Sleep>> asleep_at;
  fds.reserve(driven.size() + 1);  // ahead: nothing may be announced and not taken back
  asleep_at.reserve(driven.size());
  fds.push_back({bell_.get(), POLLIN, 0});
  for (const auto& engine : driven) {
    const Engine::Sleep sleep = engine->set_helper_asleep(true) ? engine->begin_sleep() : Engine::Sleep{};
    timeout_ns = std::min(timeout_ns, int64_t{sleep.most_ms} * 1'000'000);
    if (sleep.state != Engine::Sleep::State::kBegun) continue;
    asleep_at.emplace_back(engine.get(), sleep);
    fds.push_back({engine->sleep_fd(), POLLIN, 0});
  }
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  ::ppoll(fds.data(), fds.size(), timeout_ns == INT64_MAX ? nullptr : &timeout, nullptr);
  for (const auto& engine : driven) engine->set_helper_asleep(false);
  for (const auto& [engine, sleep] : asleep_at) engine->end_sleep(sleep);
  helper_asleep_.store(false, std::memory_order_seq_cst);
  helper_deep_asleep_.store(false, std::memory_order_seq_cst);
  uint64_t count;
  while (::read(bell_.get(), &count, sizeof count) > 0) {
  }
}

// The helper has a Patience of its own. On a processor that it shares with a computing thread its yields take long, and
// waiters should not learn from that.
void Progress::helper_loop() {
  Patience patience({.learns = false});
  Pause pause(patience);
  Driven driven;
  watch_ns_ = kUndrivenNs;
  last_work_ns_ = monotonic_clock().now_ns();
  while (!stop_.load()) {
    unless_out_of_memory([&] { helper_turn(pause, driven); },
                         [&] {
                           pollfd bell{bell_.get(), POLLIN, 0};
                           ::poll(&bell, 1, 1);
                         });
  }
}

// Drives, runs notifications, or sleeps.
void Progress::helper_turn(Pause& pause, Driven& driven) {
  const int64_t now = monotonic_clock().now_ns();
  const bool at_once = drives_at_once();
  const bool moved = helper_round(now, driven);
  if (!driven.empty()) last_work_ns_ = now;
  if (moved && !at_once && idle_drives_.load(std::memory_order_relaxed) == 0)
    callers_do_not_wait_.store(true, std::memory_order_relaxed);
  if (notifications_wait_.load(std::memory_order_relaxed)) {
    driven.clear();  // their engines may end while the functions run
    return run_notifications();
  }
  if (moved) pause.moved();
  if (moved || (!driven.empty() && pause.looks() < looks_of(*driven.front()) && pause.pass())) return;
  helper_sleep(driven, helper_timeout_ns(driven, now));
}

// The functions belong to a program whose static objects may be destroyed by now.
void Progress::process_exits() {
  if (Progress* progress = process_progress.current()) progress->exits_.store(true, std::memory_order_release);
}

}  // namespace trestle
