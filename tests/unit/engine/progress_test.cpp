// The helper thread: which engines it drives, and which it does not.
#include "engine/run/progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "unit/engine/unattended.h"

namespace trestle {
namespace progress_test {
namespace {

// Always due, so that the watch runs without pause.
class Turns : public Pollable {
 public:
  int event_fd() const override { return -1; }
  void poll(int64_t) override { count.fetch_add(1); }
  int64_t next_due_ns() const override { return 0; }

  std::atomic<int> count{0};
};

TEST(ProgressHelper, DrivesWhatNobodyWaitsFor) {
  Unattended work;
  Progress progress(true);
  ASSERT_TRUE(progress.add(work.engine).ok());
  Progress::work_started(*work.engine);
  wait_for(work.transport->driven, 1);
}

// A call that is issued while a thread sleeps at the engine rings nobody.
TEST(ProgressHelper, TakesOverWhatAWaiterLeavesBehind) {
  Unattended work;
  Progress progress(true);
  ASSERT_TRUE(progress.add(work.engine).ok());
  std::atomic<bool> leaves{false};
  std::atomic<int> sleeps{0};
  work.transport->before_sleep = [&] { sleeps.fetch_add(1); };
  std::thread waiter([&] { progress.wait([&] { return leaves.load(); }, [&] { return work.engine; }); });
  wait_for(sleeps, 1);
  Progress::call_issued(*work.engine);
  leaves.store(true);
  work.engine->wake();
  waiter.join();
  wait_for(work.transport->driven, work.transport->driven.load() + 1);
}

TEST(ProgressHelper, LeavesTheWorkToCallersWhereItIsToldTo) {
  Unattended work;
  auto turns = std::make_shared<Turns>();
  Progress progress(false);
  ASSERT_TRUE(progress.add(work.engine).ok());
  ASSERT_TRUE(progress.add(std::static_pointer_cast<Pollable>(turns)).ok());
  Progress::work_started(*work.engine);
  wait_for(turns->count, 3);  // it still receives the news
  EXPECT_EQ(work.transport->driven.load(), 0);
  progress.poke(nullptr);
  EXPECT_EQ(work.transport->driven.load(), 1);
}

// The helper may be in a user's function for a long time.
TEST(ProgressHelper, HearsTheNewsWhileAnEngineHoldsItUp) {
  auto turns = std::make_shared<Turns>();
  std::atomic<int> heard{0};
  Unattended work;
  work.transport->while_driven = [&] {
    if (heard.load() != 0) return;
    const int before = turns->count.load();
    wait_for(turns->count, before + 3);
    heard.fetch_add(1);
  };
  Progress progress(true);
  ASSERT_TRUE(progress.add(work.engine).ok());
  ASSERT_TRUE(progress.add(std::static_pointer_cast<Pollable>(turns)).ok());
  Progress::work_started(*work.engine);
  wait_for(heard, 1);
}

// The awaited engine may need another engine of the thread. The waiter drives that one, too, before it sleeps, and
// sleeps only shortly.
TEST(ProgressHelper, WithoutItAWaitDrivesTheOthersToo) {
  Unattended waited_for;
  Unattended other;
  Progress progress(false);
  ASSERT_TRUE(progress.add(waited_for.engine).ok());
  ASSERT_TRUE(progress.add(other.engine).ok());
  int sleeps = 0;
  waited_for.transport->before_sleep = [&] {
    EXPECT_GT(other.transport->driven.load(), sleeps) << "forgotten before sleep " << sleeps;
    ++sleeps;
  };
  progress.wait([&] { return sleeps == 3; }, [&] { return waited_for.engine; });
  EXPECT_EQ(sleeps, 3);
}

// While a rank's transports linger it still answers questions about what it waits for, and does not delay an exit.
TEST(EngineClose, LingersWithoutHoldingOthersUp) {
  Unattended unattended;
  Engine& engine = *unattended.engine;
  int asked = 0;
  unattended.transport->while_lingering = [&] {
    EXPECT_EQ(engine.standing({}).state, Standing::State::kUnknown);
    EXPECT_EQ(engine.oldest_operation(), "");
    EXPECT_EQ(engine.open_operation(0), "an operation");
    engine.close(0, INT64_MAX - 1);
    EXPECT_FALSE(engine.try_lock()) << "nobody drives it meanwhile";
    ++asked;
  };
  engine.close(1000);
  EXPECT_EQ(asked, 1);
  const bool given_back = engine.try_lock();
  EXPECT_TRUE(given_back);
  if (given_back) engine.unlock();
}

}  // namespace
}  // namespace progress_test
}  // namespace trestle
