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

namespace trestle {

namespace {

constexpr int kSpinsPerYield = 32;  // other work of the machine may have put a peer on this processor
constexpr int kCrowdedSpins = 20;
constexpr int kCrowdedYields = 20;
constexpr int kExpressYields = 2000;     // a board rings no bell, so sleeping is by the clock
constexpr int kOwnSleepMs = 100;         // deadlines are looked at this often by a sleeping waiter
constexpr int kOthersSleepMs = 1;        // where nobody else drives the other engines
constexpr int64_t kUndrivenNs = 50'000;  // an engine with work that nobody drove for this long is the helper's
constexpr int64_t kLongestWatchNs = 2'000'000;
constexpr int64_t kWatchAfterWorkNs = 20'000'000;

inline void pause_briefly() {
  __builtin_ia32_pause();
}

// How long a waiter looks before it sleeps. Where ranks outnumber processors, whoever looks keeps the one it waits for
// from running.
struct Patience {
  int spins = 2000;
  int yields = 200;
};

Patience patience_for(const Engine* engine) {
  if (engine == nullptr) return {};
  if (engine->spin_us() == 0) return {0, 0};
  if (engine->spin_us() > 0) return {static_cast<int>(std::min<int64_t>(engine->spin_us() * 20, 1'000'000)), 8};
  if (engine->awaits_express()) return {engine->crowded() ? kCrowdedSpins : Patience().spins, kExpressYields};
  return engine->crowded() ? Patience{kCrowdedSpins, kCrowdedYields} : Patience();
}

}  // namespace

Progress& Progress::process() {
  // Never destroyed by static destruction while another thread may wait in it: ended by the library's own exit hook.
  static Progress progress(process_config().progress_thread);
  return progress;
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
  std::erase_if(*next, [engine](const auto& e) { return e.get() == engine; });
  engines_ = std::move(next);
}

Status Progress::add(std::shared_ptr<Pollable> pollable) {
  {
    const MutexLock lock(mutex_);
    TRY(start_helper());
  }
  {
    const MutexLock lock(pollables_mutex_);
    pollables_.push_back(std::move(pollable));
  }
  ring();
  return {};
}

void Progress::remove(const Pollable* pollable) {
  const MutexLock lock(pollables_mutex_);
  std::erase_if(pollables_, [pollable](const auto& p) { return p.get() == pollable; });
}

Status Progress::start_helper() {
  if (helper_.joinable()) return {};
  bell_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
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
  for (const auto& engine : *all) engine->try_progress();
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
  const bool others = !helper_drives_ && std::any_of(engines.begin(), engines.end(), [own](const auto& engine) {
    return engine.get() != own && engine->busy() && !engine->attended();
  });
  return others ? kOthersSleepMs : kOwnSleepMs;
}

void Progress::wait(const std::function<bool()>& done, const std::function<std::shared_ptr<Engine>()>& own) {
  auto all = engines();
  int quiet = 0;
  Attendance attendance;
  while (!done()) {
    const std::shared_ptr<Engine> mine = own();
    attendance.move_to(mine);
    const Patience patience = patience_for(mine.get());
    const bool tired = quiet >= patience.spins + patience.yields;
    bool moved = mine != nullptr && mine->try_progress();
    if (!moved && (mine == nullptr || quiet % 64 == 63 || (tired && !helper_drives_))) {
      if (quiet % 1024 == 1023 || (tired && !helper_drives_)) all = engines();
      for (const auto& engine : *all) moved |= engine != mine && engine->try_progress();
    }
    if (moved) {
      quiet = 0;
      continue;
    }
    ++quiet;
    if (quiet < patience.spins && quiet % kSpinsPerYield != 0) {
      pause_briefly();
    } else if (quiet < patience.spins + patience.yields) {
      ::sched_yield();
    } else if (done()) {
      return;
    } else if (mine != nullptr) {
      mine->sleep(sleep_ms(*all, mine.get()), [&] { return done() || own() != mine; });
    } else {
      // The head waits for an event of another stream: whoever drives that one ends this wait.
      pollfd none{};
      ::poll(&none, 0, 1);
    }
  }
}

// ---- the helper thread

void Progress::poll_pollables(int64_t now_ns) {
  const MutexLock lock(pollables_mutex_);
  for (const auto& pollable : pollables_) pollable->poll(now_ns);
}

int64_t Progress::next_pollable_ns() {
  const MutexLock lock(pollables_mutex_);
  int64_t due = INT64_MAX;
  for (const auto& pollable : pollables_) due = std::min(due, pollable->next_due_ns());
  return due;
}

// Drives what nobody drives. Returns the number of engines that it had to drive.
int Progress::helper_round(int64_t now_ns) {
  const bool company = companies_.load(std::memory_order_relaxed) != 0;
  if (!helper_drives_ && !company) return 0;
  int driven = 0;
  const auto all = engines();
  for (const auto& engine : *all) {
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
  return std::any_of(engines.begin(), engines.end(), [](const auto& engine) { return engine->busy(); });
}

void Progress::helper_sleep(int64_t timeout_ns) {
  std::vector<pollfd> fds;
  fds.push_back({bell_.get(), POLLIN, 0});
  {
    const MutexLock lock(pollables_mutex_);
    for (const auto& pollable : pollables_) fds.push_back({pollable->event_fd(), POLLIN, 0});
  }
  timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
  ::ppoll(fds.data(), fds.size(), timeout_ns == INT64_MAX ? nullptr : &timeout, nullptr);
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
    poll_pollables(now);
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
    const int64_t due = next_pollable_ns();
    if (due != INT64_MAX) timeout = std::min(timeout, std::max<int64_t>(0, due - now));
    helper_sleep(timeout);
    helper_deep_asleep_.store(false, std::memory_order_seq_cst);
  }
}

}  // namespace trestle
