// Runs under DeFT: the paper's three models beside DDP and ByteScheduler, and times that follow from the queues.
#include "gradient/deft/simulate.h"

#include <gtest/gtest.h>

#include <numeric>

#include "gradient/deft/baselines.h"
#include "unit/gradient/deft_systems.h"
#include "unit/gradient/deft_vectors.h"

namespace trestle {
namespace {

TEST(DeftVgg19, IsTheWorkedCase) {
  const DeftVggVector expected;
  const DeftRun run = expect_value(simulate_deft({vgg19_buckets(), two_links()}, 40));
  EXPECT_EQ(run.update_batches, expected.updates);
  std::vector<uint32_t> batches;
  for (const DeftUpdate& update : run.updates) batches.push_back(update.batches);
  EXPECT_EQ(batches, expected.batches);
  EXPECT_EQ(run.iteration_us(), expected.deft_us);
  EXPECT_EQ(ddp_iteration_us(vgg19_buckets()), expected.ddp_us);
  EXPECT_EQ(byte_scheduler_iteration_us(vgg19_buckets(), 0), expected.byte_scheduler_us);
  EXPECT_NEAR(byte_scheduler_iteration_us(vgg19_buckets(), 13031), expected.byte_scheduler_cut_us, 1e-9 * 258'316);
}

TEST(DeftSimulation, CountsEveryBatchAndItsAge) {
  Rng rng(6);
  for (int round = 0; round < 200; ++round) {
    const DeftSystem system = random_deft_system(rng);
    const DeftRun run = expect_value(simulate_deft(system, 50));
    uint64_t batches = 0;
    for (const DeftUpdate& update : run.updates) {
      EXPECT_GE(update.newest_age, 1u);
      EXPECT_EQ(update.oldest_age - update.newest_age + 1, update.batches);
      EXPECT_EQ(update.iteration - update.oldest_age, batches);
      batches += update.batches;
    }
    EXPECT_EQ(batches + run.pending, 50u);
  }
}

// Placed messages fit into their pass, so nothing ever waits for them.
TEST(DeftSimulation, NeverWaitsWithKnapsacksOfThePass) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    const DeftSystem system = random_deft_system(rng);
    const DeftRun run = expect_value(simulate_deft(system, 50));
    EXPECT_EQ(run.ends_ns.back(), 50'000 * (forward_us(system.buckets) + backward_us(system.buckets)));
  }
}

TEST(DeftSimulation, WaitsForLargerKnapsacksAtUpdatesOnly) {
  const DeftSystem system{vgg19_buckets(), two_links()};
  const DeftRun run = expect_value(simulate_deft(system, 400, 1300));
  EXPECT_GT(run.updates_per_iteration(), 0.99);
  uint64_t waits = 0;
  for (size_t i = 0; i < run.waits_ns.size(); ++i) {
    EXPECT_TRUE(run.update_batches[i] != 0 || run.waits_ns[i] == 0) << i;
    waits += run.waits_ns[i];
  }
  EXPECT_EQ(run.ends_ns.back(), 400 * 130'285'000ull + waits);
  // The two links carry everything in 257725 / (1 + 1 / 1.65), and no schedule is faster.
  EXPECT_GT(run.iteration_us(), 257'725 / (1 + 1 / 1.65));
  EXPECT_LT(run.iteration_us(), ddp_iteration_us(system.buckets));
}

TEST(DeftSimulation, RepeatsItsCycle) {
  Rng rng(8);
  for (int round = 0; round < 100; ++round) {
    const DeftSystem system = random_deft_system(rng);
    const std::vector<uint32_t> cycle = expect_value(deft_cycle(system));
    ASSERT_FALSE(cycle.empty());
    const double per_iteration = static_cast<double>(cycle.size()) / std::accumulate(cycle.begin(), cycle.end(), 0.0);
    EXPECT_NEAR(expect_value(simulate_deft(system, 2000)).updates_per_iteration(), per_iteration, 0.02);
  }
}

// What a link sends: one message at a time, each as long as its item on that link.
TEST(DeftSimulation, NotesEveryMessage) {
  Rng rng(10);
  for (int round = 0; round < 100; ++round) {
    const DeftSystem system = random_deft_system(rng);
    const std::vector<DeftItem> items = expect_value(deft_partition(system));
    const DeftRun run = expect_value(simulate_deft(system, 20));
    std::vector<uint64_t> free_ns(system.links.size(), 0);
    std::vector<uint64_t> sent(items.size(), 0);
    for (const DeftMessage& message : run.messages) {
      EXPECT_GE(message.start_ns, free_ns[message.link]);
      EXPECT_EQ(message.end_ns - message.start_ns,
                items[message.item].comm_us * system.links[message.link].slowdown_permille);
      free_ns[message.link] = message.end_ns;
      ++sent[message.item];
    }
    // Each set has every item once; the last set is perhaps not complete.
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].comm_us == 0) continue;
      EXPECT_GE(sent[i], run.updates.size());
      EXPECT_LE(sent[i], run.updates.size() + 1);
    }
  }
}

TEST(DeftSimulation, RefusesAnEmptyRun) {
  EXPECT_FALSE(simulate_deft({vgg19_buckets(), two_links()}, 0).ok());
  EXPECT_FALSE(simulate_deft({{}, two_links()}, 1).ok());
}

TEST(Baselines, OfOneBucketAreSerial) {
  const std::vector<DeftBucket> one = {{10, 20, 30}};
  EXPECT_EQ(ddp_iteration_us(one), 60);
  EXPECT_EQ(byte_scheduler_iteration_us(one, 0), 60);
  const std::vector<DeftBucket> silent = {{10, 20, 0}};
  EXPECT_EQ(ddp_iteration_us(silent), 30);
  EXPECT_EQ(byte_scheduler_iteration_us(silent, 5), 30);
}

}  // namespace
}  // namespace trestle
