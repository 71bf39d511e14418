// The machine of delayed messages: on a virtual clock it takes exactly the simulated time; whatever the order of
// events, each link has the same messages in the same order, and every gradient is in one result.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "unit/gradient/deft_systems.h"
#include "unit/gradient/virtual_delayed.h"

namespace trestle {
namespace {

TEST(DelayedMachine, TakesExactlyTheSimulatedTime) {
  Rng rng(31);
  uint64_t waits = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const DeftSystem system = random_deft_system(rng);
    const auto capacity = static_cast<uint32_t>(round % 2 == 0 ? 1000 : 1000 + rng.below(1500));
    const DeftRun simulated = expect_value(simulate_deft(system, 60, capacity));
    const DeftQueues queues = expect_value(DeftQueues::make(system, capacity));
    const DeftRun run = VirtualDelayed(queues, 1 + static_cast<uint32_t>(rng.below(3))).run(60);
    ASSERT_EQ(run.ends_ns, simulated.ends_ns);
    ASSERT_EQ(run.waits_ns, simulated.waits_ns);
    ASSERT_EQ(run.update_batches, simulated.update_batches);
    ASSERT_EQ(run.pending, simulated.pending);
    waits += static_cast<uint64_t>(std::ranges::count_if(run.waits_ns, [](uint64_t ns) { return ns > 0; }));
  }
  EXPECT_GT(waits, 500u) << "larger knapsacks make compute wait";
}

TEST(DelayedMachine, TakesExactlyTheSimulatedTimeOfVgg19) {
  for (const std::vector<DeftLink>& links : {one_link(), two_links()}) {
    const DeftSystem system{vgg19_buckets(), links};
    VirtualDelayed run(expect_value(DeftQueues::make(system)), 3);
    EXPECT_EQ(run.run(400).ends_ns, expect_value(simulate_deft(system, 400)).ends_ns);
    for (const uint64_t sent : run.sent()) EXPECT_GT(sent, 400u);
  }
}

// ---- order

struct Recorded {
  std::vector<std::vector<DelayedMachine::Issue>> links;
  std::vector<std::vector<uint32_t>> results;  // by tensor: the batches of each step
};

// Gradients become ready in a random order, messages complete at random times, and the next step's gradients follow as
// soon as a tensor's result is there. Checks that the results have the steps in order, each one once.
class Shuffled {
 public:
  Shuffled(const DeftQueues& queues, std::vector<TensorGroup> buckets, Rng& rng)
      : machine_(queues, std::move(buckets)), rng_(rng), tensors_(size_t{machine_.buckets().back().last} + 1) {
    recorded_.links.resize(queues.system().links.size());
    recorded_.results.resize(tensors_);
    sums_.resize(tensors_);
    ready_.resize(tensors_);
    next_.resize(tensors_);
  }

  Recorded run(uint64_t steps) {
    for (uint64_t event = 0; machine_.steps() < steps || !machine_.idle(); ++event) {
      EXPECT_LT(event, 1'000'000u) << "it stands still";
      if (event == 1'000'000u || testing::Test::HasFailure()) break;
      for (uint32_t link = 0; link < recorded_.links.size(); ++link) {
        while (const auto issue = machine_.next(link)) {
          recorded_.links[link].push_back(*issue);
          on_way_.push_back(link);
        }
      }
      if (!on_way_.empty() && rng_.below(2) == 0) {
        complete();
      } else {
        ready(static_cast<uint32_t>(rng_.below(tensors_)), steps);
      }
    }
    return std::move(recorded_);
  }

 private:
  void complete() {
    const size_t which = rng_.below(on_way_.size());
    const uint32_t link = on_way_[which];
    on_way_.erase(on_way_.begin() + static_cast<ptrdiff_t>(which));
    const uint32_t item = machine_.oldest(link).item;
    machine_.complete(link);
    const TensorGroup& bucket = machine_.buckets()[machine_.queues().items()[item].bucket];
    for (uint32_t tensor = bucket.first; tensor <= bucket.last; ++tensor) take(tensor);
  }
  void ready(uint32_t tensor, uint64_t steps) {
    const uint64_t step = *std::ranges::min_element(ready_);
    if (step >= steps || ready_[tensor] > step || recorded_.results[tensor].size() < step) return;
    sums_[tensor][machine_.filling()].push_back(step);
    ++ready_[tensor];
    machine_.ready(tensor);
    take(tensor);
  }
  void take(uint32_t tensor) {
    const auto due = machine_.take(tensor);
    if (!due) return;
    EXPECT_EQ(due->step, recorded_.results[tensor].size());
    recorded_.results[tensor].push_back(due->batches);
    if (due->batches == 0) return;
    const std::vector<uint64_t> steps = sums_[tensor].extract(due->set).mapped();
    EXPECT_EQ(steps.size(), due->batches);
    for (const uint64_t step : steps) EXPECT_EQ(step, next_[tensor]++) << "lost, doubled or out of order";
    EXPECT_LT(steps.back(), due->step) << "these updates are at least one step old";
    EXPECT_LE(sums_[tensor].size(), 1u) << "there is memory for two sets";
  }

  DelayedMachine machine_;
  Rng& rng_;
  const size_t tensors_;
  std::vector<std::map<uint64_t, std::vector<uint64_t>>> sums_;  // by tensor and set: steps
  std::vector<uint64_t> ready_, next_;
  std::vector<uint32_t> on_way_;  // links, a message each
  Recorded recorded_;
};

TEST(DelayedMachine, IssuesTheSameWhateverTheOrderOfEvents) {
  Rng rng(32);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const DeftSystem system = random_deft_system(rng);
    const DeftQueues queues = expect_value(DeftQueues::make(system, 1000 + static_cast<uint32_t>(rng.below(800))));
    std::vector<TensorGroup> buckets;
    for (uint32_t next = 0; buckets.size() < system.buckets.size(); next = buckets.back().last + 1) {
      buckets.push_back({next, next + static_cast<uint32_t>(rng.below(3))});
    }
    const Recorded first = Shuffled(queues, buckets, rng).run(30);
    const Recorded other = Shuffled(queues, buckets, rng).run(30);
    ASSERT_EQ(first.links, other.links);
    ASSERT_EQ(first.results, other.results);
    for (const auto& results : first.results) ASSERT_EQ(results.size(), 30u);
    if (HasFailure()) FAIL();
  }
}

TEST(DelayedMachine, AStepMayBeginWhileTheLastOneWaits) {
  // One item in each of two buckets, which travel in the next forward pass.
  DelayedMachine machine(expect_value(DeftQueues::make({{{20, 1, 9}, {20, 1, 9}}, one_link()})), {{0, 0}, {1, 1}});
  for (const uint32_t tensor : {1, 0}) machine.ready(tensor);
  for (const uint32_t tensor : {0, 1}) EXPECT_EQ(machine.take(tensor)->batches, 0u);
  EXPECT_TRUE(machine.next(0).has_value());
  EXPECT_TRUE(machine.next(0).has_value());
  EXPECT_FALSE(machine.next(0).has_value());
  const uint32_t early = machine.queues().items()[machine.oldest(0).item].bucket;
  for (const uint32_t tensor : {1, 0}) machine.ready(tensor);
  EXPECT_FALSE(machine.take(early).has_value());
  machine.complete(0);
  EXPECT_EQ(machine.take(early), (DelayedMachine::Due{1, 1, 0}));
  EXPECT_FALSE(machine.take(1 - early).has_value()) << "its message is on its way";
  machine.ready(early);
  EXPECT_FALSE(machine.idle());
  machine.complete(0);
  EXPECT_EQ(machine.take(1 - early), (DelayedMachine::Due{1, 1, 0}));
}

}  // namespace
}  // namespace trestle
