#include "engine/run/progress.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/config/config.h"
#include "base/cpu/numa.h"
#include "base/fork.h"
#include "base/host.h"
#include "base/log.h"

namespace trestle {

namespace {

constexpr int kOwnSleepMs = 100;   // how often a sleeping waiter checks deadlines
constexpr int kOthersSleepMs = 1;  // how often where no other thread drives the other engines

constinit PerProcess<Progress> process_progress;

}  // namespace

// Never destroyed: other threads may wait in it while the process exits, and goodbyes are heard until the end. A thread
// that makes a communicator may be bound more narrowly than the process, whose mask is the first thread's.
Progress& Progress::process() {
  return process_progress.get([] {
    const Config& config = process_config();
    return Progress(config.progress_thread, choose_progress_places(config.progress_threads, "/sys/devices/system/node",
                                                                   usable_cpu_mask(getpid())));
  });
}

Progress::Progress(bool helpers_drive, const ProgressPlaces& places) : places_(places), duties_(helpers_drive) {
  const size_t count = places.processors.size();
  const std::string of =
      std::to_string(count) + (count == 1 ? " helper thread at most: " : " helper threads at most: ") + places.why;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<int> nodes = places.nodes.empty() ? std::vector<int>{} : places.nodes[i];
    helpers_.push_back(
        std::make_unique<ProgressThread>(duties_, ProgressThread::Place{i, places.processors[i], nodes, of}));
  }
}

// All stop before one is gone: the last round of one may ring another.
Progress::~Progress() {
  for (const auto& thread : helpers_) thread->stop();
}

std::shared_ptr<const EngineList> Progress::engines() const {
  const MutexLock lock(mutex_);
  return engines_;
}

Status Progress::add(const std::shared_ptr<Engine>& engine) {
  const MutexLock lock(mutex_);
  ProgressThread& helper = *helpers_[helper_for(*engine)];
  TRY(helper.start());
  auto next = with_engine(*engines_, engine);
  helper.add(engine);
  engine->set_helper(&helper);
  engines_ = std::move(next);
  return {};
}

size_t Progress::helper_for(const Engine& engine) const {
  HelperChoice choice =
      choose_helper(places_, {::sched_getcpu(), processors_of(usable_cpu_mask()), engine.rails_node()});
  if (!choice.helper) {
    const auto fewest = std::ranges::min_element(helpers_, {}, [](const auto& one) { return one->engine_count(); });
    choice.helper = static_cast<size_t>(fewest - helpers_.begin());
  }
  if (!choice.why.empty())
    LOG(kInfo, kInit, "helper thread %zu drives this rank; %s", *choice.helper, choice.why.c_str());
  return *choice.helper;
}

void Progress::remove(Engine* engine) {
  const MutexLock lock(mutex_);
  engines_ = without_engine(*engines_, engine);
  if (ProgressThread* thread = engine->helper()) thread->remove(engine);
  engine->set_helper(nullptr);
}

void Progress::ring_sleepers() {
  for (const auto& thread : helpers_) thread->ring_sleeper();
}

Status Progress::expect_notification() {
  TRY(helpers_.front()->start());
  duties_.notifications.expect();
  ring_sleepers();
  return {};
}

void Progress::run_notification(std::list<std::function<void()>> notification) {
  duties_.notifications.add(std::move(notification));
  helpers_.front()->ring_sleeper();
}

Progress::IdleDrive::IdleDrive() {
  process().duties_.idle_drives.fetch_add(1, std::memory_order_seq_cst);
  process().ring_sleepers();
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

// Marks the engine that a waiting thread drives, so that its helper leaves it alone.
class Progress::WaiterMark {
 public:
  WaiterMark() = default;
  ~WaiterMark() { move_to(nullptr); }
  WaiterMark(const WaiterMark&) = delete;
  WaiterMark& operator=(const WaiterMark&) = delete;
  void move_to(const std::shared_ptr<Engine>& engine) {
    if (engine == engine_) return;
    if (engine_ != nullptr) engine_->add_waiters(-1);
    if (engine_ != nullptr && engine_->busy()) work_started(*engine_);
    if (engine != nullptr) engine->add_waiters(1);
    ProgressThread* thread = engine != nullptr ? engine->helper() : nullptr;
    if (thread != nullptr) thread->waited_for(*engine);
    engine_ = engine;
  }

 private:
  std::shared_ptr<Engine> engine_;
};

// Where helpers drive nothing, a thread that sleeps at its own engine must look after the others too: its own may
// wait for them.
int Progress::sleep_ms(const EngineList& engines, const Engine* own) const {
  const bool others = !duties_.always && std::any_of(engines.begin(), engines.end(), [own](const auto& one) {
    const auto engine = one.lock();
    return engine != nullptr && engine.get() != own && engine->busy() && !engine->has_waiters();
  });
  return others ? kOthersSleepMs : kOwnSleepMs;
}

void Progress::wait(const std::function<bool()>& done, const std::function<std::shared_ptr<Engine>()>& own) {
  auto all = engines();
  Pause pause(common_patience_);
  WaiterMark mark;
  while (!done()) {
    const std::shared_ptr<Engine> mine = own();
    mark.move_to(mine);
    pause.use(mine != nullptr ? mine->patience() : common_patience_);
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
      const auto awake = [&] { return done() || own() != mine; };
      mine->sleep(sleep_ms(*all, mine.get()), std::ref(awake));  // by reference: the wait takes no memory
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
