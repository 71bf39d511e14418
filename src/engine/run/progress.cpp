#include "engine/run/progress.h"

#include <poll.h>

#include <algorithm>

#include "base/config/config.h"
#include "base/fork.h"
#include "engine/run/patience.h"

namespace trestle {

namespace {

constexpr int kOwnSleepMs = 100;   // how often a sleeping waiter checks deadlines
constexpr int kOthersSleepMs = 1;  // the same where no other thread drives the other engines

// For waits whose engine is not known.
Patience& common_patience() {
  static constinit PerProcess<Patience> patience;
  return patience.get([] { return Patience{PatienceLimits{.learns = false}}; });
}

constinit PerProcess<Progress> process_progress;

}  // namespace

// Never destroyed: other threads may wait in it while the process exits, and goodbyes are heard until the end.
Progress& Progress::process() {
  return process_progress.get([] { return Progress(process_config().progress_thread); });
}

std::shared_ptr<const Progress::Engines> Progress::engines() const {
  const MutexLock lock(mutex_);
  return engines_;
}

Status Progress::add(const std::shared_ptr<Engine>& engine) {
  const MutexLock lock(mutex_);
  TRY(helper_.start());
  auto next = std::make_shared<Engines>(*engines_);
  next->push_back(engine);
  helper_.add(engine);
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
  helper_.remove(engine);
}

Status Progress::expect_notification() {
  TRY(helper_.start());
  duties_.notifications.expect();
  helper_.ring_sleeper();
  return {};
}

void Progress::run_notification(std::function<void()> notification) {
  duties_.notifications.add(std::move(notification));
  helper_.ring_sleeper();
}

Progress::IdleDrive::IdleDrive() {
  process().duties_.idle_drives.fetch_add(1, std::memory_order_seq_cst);
  process().helper_.ring_sleeper();
}

Progress::IdleDrive::~IdleDrive() {
  process().duties_.idle_drives.fetch_sub(1, std::memory_order_seq_cst);
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
    if (engine_ != nullptr && engine_->busy()) progress_.helper_.work_started();
    if (engine != nullptr) engine->add_waiters(1);
    if (engine != nullptr) progress_.helper_.waited_for(*engine);
    engine_ = engine;
  }

 private:
  Progress& progress_;
  std::shared_ptr<Engine> engine_;
};

// Where the helper drives nothing, a thread that sleeps at its own engine must look after the others too: its own may
// wait for them.
int Progress::sleep_ms(const Engines& engines, const Engine* own) const {
  const bool others = !duties_.always && std::any_of(engines.begin(), engines.end(), [own](const auto& one) {
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
    const bool drives_all = !duties_.always && pause.should_sleep();
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

// The functions belong to a program whose static objects may be destroyed by now.
void Progress::process_exits() {
  if (Progress* progress = process_progress.current()) progress->duties_.notifications.process_exits();
}

}  // namespace trestle
