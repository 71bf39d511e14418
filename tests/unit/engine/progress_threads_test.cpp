// Several helper threads: which engines each of them has, and where they run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/cpu/numa.h"
#include "base/host.h"
#include "base/log.h"
#include "engine/run/progress.h"
#include "support/log_lines.h"
#include "support/no_threads.h"
#include "support/node_files.h"
#include "unit/engine/unattended.h"

namespace trestle {
namespace progress_threads_test {
namespace {

using Lists = std::vector<std::vector<int>>;

ProgressPlaces anywhere(size_t threads) {
  return {Lists(threads), "as the test wants"};
}

void wait_until(const std::function<bool()>& ready) {
  while (!ready()) sched_yield();
}

// ---- which engines they drive

// Each engine stays in its round until the other one is in one.
TEST(ProgressThreads, DriveTwoEnginesAtTheSameTime) {
  Unattended one, other;
  std::atomic<int> in_one{0}, in_other{0}, met{0};
  one.transport->while_driven = [&] {
    in_one.store(1);
    wait_for(in_other, 1);
    met.fetch_add(1);
  };
  other.transport->while_driven = [&] {
    in_other.store(1);
    wait_for(in_one, 1);
    met.fetch_add(1);
  };
  Progress progress(true, anywhere(2));
  for (const Unattended* work : {&one, &other}) {
    ASSERT_TRUE(progress.add(work->engine).ok());
    Progress::work_started(*work->engine);
  }
  wait_for(met, 2);
}

TEST(ProgressThreads, GetTheEngineWhereTheFewestAre) {
  Unattended works[5];
  Progress progress(true, anywhere(2));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(progress.add(works[i].engine).ok());
  ProgressThread* const first = works[0].engine->helper();
  ProgressThread* const second = works[1].engine->helper();
  EXPECT_NE(first, second);
  EXPECT_EQ(works[2].engine->helper(), first);
  EXPECT_EQ(works[3].engine->helper(), second);
  progress.remove(works[1].engine.get());
  EXPECT_EQ(works[1].engine->helper(), nullptr);
  Progress::work_started(*works[1].engine);  // rings nobody
  ASSERT_TRUE(progress.add(works[4].engine).ok());
  EXPECT_EQ(works[4].engine->helper(), second);
}

TEST(ProgressThreads, LetGoOfAnEngineThatIsRemovedWhileTheySleep) {
  Unattended gone(0), next;
  std::atomic<int> sleeps{0};
  gone.transport->before_sleep = [&] { sleeps.fetch_add(1); };
  Progress progress(true, anywhere(2));
  ASSERT_TRUE(progress.add(gone.engine).ok());
  ProgressThread* const helper = gone.engine->helper();
  Progress::work_started(*gone.engine);
  wait_for(sleeps, 1);
  progress.remove(gone.engine.get());
  wait_until([&] { return gone.engine.use_count() == 1; });
  const int driven = gone.transport->driven.load();
  ASSERT_TRUE(progress.add(next.engine).ok());
  EXPECT_EQ(next.engine->helper(), helper);
  Progress::work_started(*next.engine);
  wait_for(next.transport->driven, 1);
  EXPECT_EQ(gone.transport->driven.load(), driven);
}

TEST(ProgressThreads, ThatCannotStartGetNothing) {
  Unattended one, other;
  Progress progress(true, anywhere(2));
  ASSERT_TRUE(progress.add(one.engine).ok());
  {
    const NoThreads none;
    EXPECT_FALSE(progress.add(other.engine).ok());
    EXPECT_EQ(other.engine->helper(), nullptr);
  }
  progress.poke(nullptr);
  EXPECT_EQ(other.transport->driven.load(), 0) << "it was added";
  ASSERT_TRUE(progress.add(other.engine).ok());
  Progress::work_started(*other.engine);
  wait_for(other.transport->driven, 1);
}

// ---- notifications

TEST(ProgressThreads, RunOneNotificationAtATime) {
  constexpr int kEach = 10;
  Unattended works[3];
  std::atomic<int> inside{0}, run{0};
  std::atomic<pid_t> runner{0};
  Progress progress(true, anywhere(3));
  const auto notification = [&] {
    EXPECT_EQ(inside.fetch_add(1), 0);
    const pid_t before = runner.exchange(gettid());
    EXPECT_TRUE(before == 0 || before == gettid()) << "another thread than before";
    sched_yield();
    inside.fetch_sub(1);
    run.fetch_add(1);
  };
  for (Unattended& work : works) {
    work.transport->while_driven = [&progress, &notification, left = kEach]() mutable {
      if (left-- > 0) progress.run_notification({notification});
    };
    for (int i = 0; i < kEach; ++i) ASSERT_TRUE(progress.expect_notification().ok());
  }
  for (const Unattended& work : works) ASSERT_TRUE(progress.add(work.engine).ok());
  for (const Unattended& work : works) Progress::work_started(*work.engine);
  wait_for(run, 3 * kEach);
}

// Also where they drive only what notifications are expected of.
TEST(ProgressThreads, DriveTheOthersWhileANotificationRuns) {
  for (const bool always : {true, false}) {
    Unattended held_up, other;
    std::atomic<int> run{0};
    Progress progress(always, anywhere(2));
    ASSERT_TRUE(progress.add(held_up.engine).ok());
    ASSERT_TRUE(progress.add(other.engine).ok());
    ASSERT_TRUE(progress.expect_notification().ok());
    progress.run_notification({[&] {
      const int before = held_up.transport->driven.load();
      wait_for(other.transport->driven, other.transport->driven.load() + 1);
      EXPECT_EQ(held_up.transport->driven.load(), before);
      run.fetch_add(1);
    }});
    wait_for(run, 1);
  }
}

// ---- where they run

// The processors of a helper's node, for an engine that was added by a thread on `processor`.
std::vector<int> processors_for(int processor, const ProgressPlaces& places) {
  Unattended work;
  std::vector<int> processors;
  std::atomic<int> known{0};
  work.transport->while_driven = [&] {
    if (known.load() != 0) return;
    processors = processors_of(usable_cpu_mask());
    known.store(1);
  };
  Progress progress(true, places);
  std::thread([&] {
    EXPECT_TRUE(bind_thread({processor}));
    EXPECT_TRUE(progress.add(work.engine).ok());
  }).join();
  Progress::work_started(*work.engine);
  wait_for(known, 1);
  return processors;
}

TEST(ProgressThreads, RunOnTheNodeOfTheThreadThatAdds) {
  const std::vector<int> usable = processors_of(usable_cpu_mask());
  if (usable.size() < 2) GTEST_SKIP() << "there is one processor";
  const NodeFiles files({std::to_string(usable[0]), processors_text({usable.begin() + 1, usable.end()})});
  const ProgressPlaces places = choose_progress_places(0, files.path(), usable_cpu_mask());
  ASSERT_EQ(places.processors.size(), 2u);
  for (const int at : {usable[0], usable[1]}) {
    const std::vector<int>& node = places.processors[at == usable[0] ? 0 : 1];
    EXPECT_EQ(processors_for(at, places), node);
  }
}

// The node has all processors, so that no thread is bound more narrowly.
TEST(ProgressThreads, SayWhatTheRailsHadToDoWithIt) {
  const LogLines lines(LogLevel::kInfo, static_cast<uint32_t>(Subsystem::kInit));
  const std::vector<int> usable = processors_of(usable_cpu_mask());
  ProgressPlaces places{{{}, usable}, "as the test wants", {{0}, {1}}};
  if (usable.size() > 1) places.processors = {{usable.front()}, {usable.begin() + 1, usable.end()}};
  Unattended near, far, none;
  near.transport->put_at(1);
  far.transport->put_at(7);
  Progress progress(true, places);
  const std::string start = "helper thread 1 on processors " + processors_text(places.processors[1]) +
                            " of NUMA node 1; 2 helper threads at most: as the test wants\n";
  ASSERT_TRUE(progress.add(near.engine).ok());
  EXPECT_NE(lines.text().find("helper thread 1 drives this rank; its rails are at NUMA node 1\n"), std::string::npos)
      << lines.text();
  wait_until([&] { return lines.text().find(start) != std::string::npos; });
  ASSERT_TRUE(progress.add(far.engine).ok());
  EXPECT_NE(lines.text().find("drives this rank; its rails are at NUMA node 7, where this process may not run\n"),
            std::string::npos)
      << lines.text();
  ASSERT_TRUE(progress.add(none.engine).ok());
  EXPECT_EQ(lines.text().find(" drives this rank", lines.text().find("node 7")), std::string::npos)
      << "nothing is known of rails";
}

TEST(ProgressThreads, SayHowManyAndWhereWhenTheyStart) {
  const LogLines lines(LogLevel::kInfo, static_cast<uint32_t>(Subsystem::kInit));
  {
    Unattended one, other;
    Progress progress(true, anywhere(2));
    const std::string where = " on processors " + processors_text(processors_of(usable_cpu_mask()));
    const std::string line = where + "; 2 helper threads at most: as the test wants\n";
    for (const auto& [work, name] : {std::pair(&one, "helper thread 0"), {&other, "helper thread 1"}}) {
      EXPECT_EQ(lines.text().find(name), std::string::npos) << "before it has an engine";
      EXPECT_TRUE(progress.add(work->engine).ok());
      wait_until([&, text = name + line] { return lines.text().find(text) != std::string::npos; });
    }
  }
}

}  // namespace
}  // namespace progress_threads_test
}  // namespace trestle
