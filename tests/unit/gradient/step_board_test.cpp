// The board between the program's threads and the executor's: marks of gradients, wakes, waits and failures.
#include "gradient/executor/step_board.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include "gradient/policy/policies.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

// Another thread may end the step as soon as it sees the last gradient. Then everything of its mark must be in place.
TEST(StepBoard, AGradientIsReadyWhenItsMarkIsComplete) {
  const GradientWorkload workload = workload_from({4, 4}, {1, 1}, {1, 1});
  const GradientPlan plan = plan_step(parse_gradient_policy("sync").value(), workload, {}).value().plan;
  const StepMessages list = step_messages(plan, workload);
  for (const bool followed : {false, true}) {
    StepBoard board(2);
    if (followed) board.follow(list);
    ASSERT_EQ(board.claim(0), StepBoard::Marked::kYes);
    EXPECT_EQ(board.claim(0), StepBoard::Marked::kTwice);
    EXPECT_FALSE(board.is_ready(0));
    EXPECT_FALSE(board.take_mark().has_value());
    EXPECT_FALSE(board.settle(0, nullptr));
    EXPECT_TRUE(board.is_ready(0));
    ASSERT_EQ(board.claim(1), StepBoard::Marked::kYes);
    EXPECT_EQ(board.missing(), std::vector<uint32_t>{1});
    EXPECT_EQ(board.settle(1, nullptr), followed);
    EXPECT_TRUE(board.missing().empty());
    EXPECT_EQ(board.take_mark().has_value(), followed);
    board.end_step();
    EXPECT_EQ(board.is_complete(1), !followed);
    EXPECT_EQ(board.claim(1), followed ? StepBoard::Marked::kNotWaited : StepBoard::Marked::kYes);
  }
}

TEST(StepBoard, TakesEachMarkOnceFromManyThreads) {
  constexpr uint32_t kTensors = 64;
  std::vector<uint64_t> bytes(kTensors, 4);
  const std::vector<double> times(kTensors, 1);
  const GradientWorkload workload = workload_from(bytes, times, times);
  const GradientPlan plan = plan_step(parse_gradient_policy("nearby:8").value(), workload, {}).value().plan;
  StepBoard board(kTensors);
  const StepMessages list = step_messages(plan, workload);
  board.follow(list);
  for (uint64_t step = 1; step <= 50; ++step) {
    std::atomic<int> wakes{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (uint32_t i = t; i < kTensors; i += 4) {
          const StepBoard::Mark mark = board.mark(i, nullptr);
          EXPECT_EQ(mark.marked, StepBoard::Marked::kYes);
          wakes += mark.wake;
          EXPECT_EQ(board.mark(i, nullptr).marked, StepBoard::Marked::kTwice);
        }
      });
    }
    std::set<uint32_t> taken;
    while (taken.size() < kTensors) {
      if (const auto mark = board.take_mark()) {
        ASSERT_TRUE(taken.insert(*mark).second);
      }
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(board.take_mark().has_value());
    EXPECT_EQ(wakes.load(), 8) << "one for each group";
    EXPECT_TRUE(board.missing().empty());
    board.end_step();
    EXPECT_EQ(board.mark(0, nullptr).marked, StepBoard::Marked::kNotWaited);
    for (uint32_t i = 0; i < kTensors; ++i) {
      EXPECT_FALSE(board.is_complete(i));
      board.complete(i, step);
      EXPECT_TRUE(board.wait(i).ok());
    }
  }
}

template <class T>
void shuffle(std::vector<T>& all, Rng& rng) {
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[rng.below(i)]);
}

// A plan of parts: runs from somewhere in one tensor to somewhere in another one, in any order.
std::vector<TensorGroup> random_runs(Rng& rng, uint32_t tensors) {
  std::vector<TensorGroup> runs;
  for (uint32_t at = 0; at < tensors;) {
    const uint32_t last = std::min<uint32_t>(tensors - 1, at + static_cast<uint32_t>(rng.below(4)));
    runs.push_back({at, last});
    at = rng.below(2) == 0 && runs.size() < 3 * size_t{tensors} ? last
                                                                : last + 1;  // its other parts are in the next one
    if (rng.below(8) == 0) ++at;                                             // a tensor of no bytes
  }
  shuffle(runs, rng);
  return runs;
}

// Whichever messages the plan waits for, the mark that completes one wakes the executor. There are no more wakes than
// messages and tensors that several of them share.
TEST(StepBoard, EveryMessageOfPartsIsWokenFor) {
  Rng rng(25);
  for (int round = 0; round < 300; ++round) {
    const auto tensors = static_cast<uint32_t>(1 + rng.below(12));
    StepMessages list;
    list.tensors = tensors;
    list.by_parts = true;
    list.waits.assign(tensors, true);
    std::vector<uint32_t> messages_of(tensors, 0), order;
    for (const TensorGroup& run : random_runs(rng, tensors)) {
      list.messages.emplace_back().tensors = run;
      for (uint32_t i = run.first; i <= run.last; ++i) ++messages_of[i];
    }
    StepBoard board(tensors);
    board.follow(list);
    for (uint32_t i = 0; i < tensors; ++i) order.push_back(i);
    shuffle(order, rng);
    size_t wakes = 0;
    for (const uint32_t tensor : order) {
      const auto complete = [&](const StepMessage& message) {
        for (uint32_t i = message.tensors.first; i <= message.tensors.last; ++i) {
          if (!board.is_ready(i)) return false;
        }
        return true;
      };
      const auto before = std::ranges::count_if(list.messages, complete);
      const bool wake = board.mark(tensor, nullptr).wake;
      const bool completes = std::ranges::count_if(list.messages, complete) > before || board.missing().empty();
      EXPECT_TRUE(wake || !completes) << round << ": " << tensor;
      wakes += wake;
    }
    const auto shared = std::ranges::count_if(messages_of, [](uint32_t messages) { return messages > 1; });
    EXPECT_LE(wakes, list.messages.size() + static_cast<size_t>(shared) + 1) << "one for tensors of no bytes";
  }
}

// ---- marks that come late

StepMessages one_message_of_each(const std::vector<TensorGroup>& groups) {
  StepMessages list;
  list.tensors = groups.back().last + 1;
  list.waits.assign(list.tensors, true);
  for (const TensorGroup& group : groups) {
    StepMessage message;
    message.tensors = group;
    list.messages.push_back(std::move(message));
  }
  return list;
}

// Holds a thread wherever a signal meets it, thus also in the middle of a mark.
std::atomic<uint64_t> reached{0}, released{0};
void hold(int) {
  const uint64_t number = reached.fetch_add(1) + 1;
  while (released.load() < number) sched_yield();
}

class SlowMarks {
 public:
  static constexpr uint32_t kGroups = 16, kEach = 4, kFast = kGroups * kEach, kSlow = 1024;
  SlowMarks() : groups_(groups()), board_(kFast + kSlow) {
    board_.follow(one_message_of_each(groups_));
    struct sigaction action = {};
    action.sa_handler = hold;
    sigaction(SIGUSR1, &action, nullptr);
  }
  void step(uint64_t number) {
    std::atomic<bool> over{false};
    std::thread slow([&] {
      for (uint32_t i = kFast; i < kFast + kSlow; ++i) board_.mark(i, nullptr);
      while (!over.load()) std::this_thread::yield();
    });
    for (size_t g = 0; g < kGroups; ++g) mark_while_held(slow.native_handle(), groups_[g]);
    over.store(true);
    slow.join();
    take();
    EXPECT_EQ(taken_.size(), kFast + kSlow);
    taken_.clear();
    board_.end_step();
    for (uint32_t i = 0; i < kFast + kSlow; ++i) {
      board_.complete(i, number);
      EXPECT_TRUE(board_.wait(i).ok());
    }
  }

 private:
  static std::vector<TensorGroup> groups() {
    std::vector<TensorGroup> all;
    for (uint32_t g = 0; g < kGroups; ++g) all.push_back({g * kEach, (g + 1) * kEach - 1});
    all.push_back({kFast, kFast + kSlow - 1});
    return all;
  }
  void take() {
    while (const auto tensor = board_.take_mark()) EXPECT_TRUE(taken_.insert(*tensor).second) << *tensor;
  }
  void mark_while_held(pthread_t slow, const TensorGroup& group) {
    const uint64_t before = reached.load();
    ASSERT_EQ(pthread_kill(slow, SIGUSR1), 0);
    while (reached.load() == before) std::this_thread::yield();
    for (uint32_t i = group.first; i <= group.last; ++i) EXPECT_EQ(board_.mark(i, nullptr).wake, i == group.last);
    take();
    for (uint32_t i = group.first; i <= group.last; ++i) EXPECT_TRUE(taken_.contains(i)) << i;
    released.fetch_add(1);
  }

  const std::vector<TensorGroup> groups_;
  StepBoard board_;
  std::set<uint32_t> taken_;  // in this step
};

// A group that is complete is not held up by another one's mark that is half done. Nothing would wake the executor when
// that is done, so the group would travel only when another one is complete, perhaps at the step's end.
TEST(StepBoard, BehindAWakeTheWholeGroupIsThere) {
  SlowMarks marks;
  for (uint64_t step = 1; step <= 60 && !testing::Test::HasFailure(); ++step) marks.step(step);
}

TEST(StepBoard, AFailureEndsWaits) {
  const GradientWorkload workload = workload_from({4}, {1}, {1});
  StepBoard board(1);
  const GradientPlan plan = plan_step(parse_gradient_policy("wfbp").value(), workload, {}).value().plan;
  const StepMessages list = step_messages(plan, workload);
  board.follow(list);
  board.mark(0, nullptr);
  board.end_step();
  std::thread waits([&] {
    const Status status = board.wait(0);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "the first");
  });
  board.fail({Code::kRemoteError, "the first"});
  board.fail({Code::kTimeout, "the second"});
  waits.join();
  EXPECT_EQ(board.failure()->code, Code::kRemoteError);
}

}  // namespace
}  // namespace trestle
