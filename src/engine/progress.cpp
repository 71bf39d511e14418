#include "engine/progress.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/config.h"
#include "base/fork.h"
#include "engine/patience.h"

namespace trestle {

namespace {

constexpr int kOwnSleepMs = 100;         // deadlines are looked at this often by a sleeping waiter
constexpr int kOthersSleepMs = 1;        // where nobody else drives the other engines
constexpr int64_t kUndrivenNs = 50'000;  // an engine with work that nobody drove for this long is the helper's
constexpr int64_t kLongestWatchNs = 2'000'000;
constexpr int64_t kWatchAfterWorkNs = 20'000'000;

// Of waits that no engine is known for.
Patience& common_patience() {
  static constinit PerProcess<Patience> patience;
  return patience.get([] { return Patience{PatienceLimits{.learns = false}}; });
}

constinit PerProcess<Progress> process_progress;

}  // namespace

// Never destroyed: other threads may wait in it while the process exits, and its helper hears goodbyes until the end.
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

void Progress::work_started() {
  if (helper_drives_ && helper_deep_asleep_.load(std::memory_order_seq_cst)) ring();
}

Progress::Company::Company() {
  process().companies_.fetch_add(1, std::memory_order_seq_cst);
  if (process().helper_deep_asleep_.load(std::memory_order_seq_cst)) process().ring();
}

Progress::Company::~Company() {
  process().companies_.fetch_sub(1, std::memory_order_seq_cst);
}

void Progress::poke() {
  const auto all = engines();
  for (const auto& one : *all) {
    if (const auto engine = one.lock()) engine->try_progress();
  }
}

namespace {

// Marks the engine that a waiting thread drives, so that the helper leaves it alone.
class Attendance {
 public:
  ~Attendance() { move_to(nullptr); }
  void move_to(const std::shared_ptr<Engine>& engine) {
    if (engine == engine_) return;
    if (engine_ != nullptr) engine_->attend(-1);
    if (engine != nullptr) engine->attend(1);
    engine_ = engine;
  }

 private:
  std::shared_ptr<Engine> engine_;
};

}  // namespace

// Where the helper drives nothing, who sleeps at its own engine must not forget the others: its own may wait for them.
int Progress::sleep_ms(const Engines& engines, const Engine* own) const {
  const bool others = !helper_drives_ && std::any_of(engines.begin(), engines.end(), [own](const auto& one) {
    const auto engine = one.lock();
    return engine != nullptr && engine.get() != own && engine->busy() && !engine->attended();
  });
  return others ? kOthersSleepMs : kOwnSleepMs;
}

void Progress::wait(const std::function<bool()>& done, const std::function<std::shared_ptr<Engine>()>& own) {
  auto all = engines();
  Pause pause(common_patience());
  Attendance attendance;
  while (!done()) {
    const std::shared_ptr<Engine> mine = own();
    attendance.move_to(mine);
    pause.use(mine != nullptr ? mine->patience() : common_patience());
    const bool drives_all = !helper_drives_ && pause.tired();
    bool moved = mine != nullptr && mine->try_progress();
    if (!moved && (mine == nullptr || pause.looks() % 64 == 63 || drives_all)) {
      if (pause.looks() % 1024 == 1023 || drives_all) all = engines();
      for (const auto& one : *all) {
        const auto engine = one.lock();
        moved |= engine != nullptr && engine != mine && engine->try_progress();
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
      // The head waits for an event of another stream: whoever drives that one ends this wait.
      pollfd none{};
      ::poll(&none, 0, 1);
    }
  }
  pause.moved();
}

// ---- the helper thread

// Drives what nobody drives. Returns the number of engines that it had to drive.
int Progress::helper_round(int64_t now_ns) {
  const bool company = companies_.load(std::memory_order_relaxed) != 0;
  if (!helper_drives_ && !company) return 0;
  int driven = 0;
  const auto all = engines();
  for (const auto& one : *all) {
    const auto engine = one.lock();
    if (engine == nullptr) continue;
    const bool busy = engine->busy();
    if (engine->attended() || (!busy && !company)) continue;
    if (busy && now_ns - engine->last_driven_ns() < kUndrivenNs) continue;
    // Stays with it while things move, so that a transfer does not crawl from tick to tick.
    bool moved = false;
    while (engine->try_progress()) moved = true;
    if (busy || moved) ++driven;
  }
  return driven;
}

bool Progress::anything_to_drive(const Engines& engines) const {
  if (companies_.load(std::memory_order_seq_cst) != 0) return true;
  if (!helper_drives_) return false;
  return std::any_of(engines.begin(), engines.end(), [](const auto& one) {
    const auto engine = one.lock();
    return engine != nullptr && engine->busy();
  });
}

void Progress::helper_sleep(int64_t timeout_ns) {
  pollfd bell{bell_.get(), POLLIN, 0};
  timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
  ::ppoll(&bell, 1, timeout_ns == INT64_MAX ? nullptr : &timeout, nullptr);
  uint64_t count;
  while (::read(bell_.get(), &count, sizeof count) > 0) {
  }
}

void Progress::helper_loop() {
  Clock& clock = monotonic_clock();
  int64_t watch_ns = kUndrivenNs;
  int64_t last_work_ns = clock.now_ns();
  while (!stop_.load()) {
    const int64_t now = clock.now_ns();
    const int driven = helper_round(now);
    const auto all = engines();
    const bool busy = anything_to_drive(*all);
    if (busy) last_work_ns = now;
    watch_ns = driven != 0 ? kUndrivenNs : std::min(watch_ns * 2, kLongestWatchNs);
    int64_t timeout = watch_ns;
    if (!busy && now - last_work_ns > kWatchAfterWorkNs) {
      helper_deep_asleep_.store(true, std::memory_order_seq_cst);
      timeout = anything_to_drive(*all) ? kUndrivenNs : INT64_MAX;
    }
    helper_sleep(timeout);
    helper_deep_asleep_.store(false, std::memory_order_seq_cst);
  }
}

}  // namespace trestle
