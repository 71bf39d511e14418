// Work on data takes time in the simulator. Every algorithm is right with it, and durations are as calculated.
#include <gtest/gtest.h>

#include "algorithms/catalog.h"
#include "tests/sim/jobs.h"

namespace trestle {
namespace work_test {
namespace {

SimOptions options_with(const Topology& topology, const SimWork& work, uint64_t seed) {
  SimOptions options = options_for(topology, seed, 20'000);
  options.work = work;
  return options;
}

constexpr SimWork kSlow{.mbps = 50'000, .launch_ns = 700, .most_delay_ns = 40'000};

TEST(SimWork, EveryAlgorithmThatServesReducesOverADelayedQueue) {
  for (const int32_t ranks : {2, 4, 7, 8}) {
    const Topology topology = grid({ranks});
    for (const Algorithm& algorithm : algorithms()) {
      if (!algorithm.serves(PhaseKind::kAllReduce, ranks)) continue;
      Job job = all_reduce_job(topology, 10'007, 2, std::string(algorithm.name).c_str());
      SimCluster cluster(topology, options_with(topology, kSlow, 9));
      const auto time = cluster.run({job.call});
      ASSERT_TRUE(time.ok()) << algorithm.name << ": " << time.error().message;
      expect_sums(job);
    }
  }
}

// Two ranks exchange halves, add them up and exchange the sums: two messages, and the work in between.
TEST(SimWork, TakesItsTimeBetweenTheMessages) {
  const Topology topology = grid({2});
  const size_t count = 1 << 20;
  const uint64_t half_bytes = count / 2 * 4;
  SimOptions options = options_for(topology, 0, 0);
  options.segment_bytes = half_bytes;
  const auto time_of = [&](const SimWork& work) {
    options.work = work;
    Job job = all_reduce_job(topology, count, 1, "ring");
    SimCluster cluster(topology, options);
    const auto time = cluster.run({job.call});
    EXPECT_TRUE(time.ok()) << time.error().message;
    expect_sums(job);
    return cluster.last_run_ps();
  };
  const uint64_t without_ps = time_of({});
  EXPECT_EQ(without_ps, 2 * (1'000'000 + half_bytes * 80));  // 1 us, and 80 ps per byte at 100 Gbit/s
  EXPECT_EQ(time_of({.mbps = 200'000, .launch_ns = 5000}), without_ps + 5'000'000 + half_bytes * 40);
}

// With segments, work is done while later segments arrive. Only the last segment's work takes extra time.
TEST(SimWork, HidesBehindTheMessagesOfOtherSegments) {
  const Topology topology = grid({2});
  const size_t count = 1 << 20;
  const uint64_t half_bytes = count / 2 * 4;
  SimOptions options = options_for(topology, 0, 0);
  options.segment_bytes = half_bytes / 16;
  options.segments_in_flight = 16;
  options.work = {.mbps = 200'000};
  Job job = all_reduce_job(topology, count, 1, "ring");
  SimCluster cluster(topology, options);
  ASSERT_TRUE(cluster.run({job.call}).ok());
  expect_sums(job);
  // The second half of the all-reduce is also sent in segments. It begins before the first half has ended, and both
  // need the same link.
  EXPECT_LE(cluster.last_run_ps(), 2 * (1'000'000 + half_bytes * 80) + half_bytes / 16 * 40);
}

TEST(SimWork, OfASlowRankTakesLonger) {
  const Topology topology = grid({2});
  SimOptions options = options_for(topology, 0, 0);
  options.segment_bytes = 1 << 20;
  options.work = {.mbps = 1000};  // so slow that messages hardly count
  const auto time_of = [&](uint64_t percent) {
    options.faults.slow_ranks = {{1, percent}};
    Job job = all_reduce_job(topology, 1 << 16, 1, "ring");
    SimCluster cluster(topology, options);
    EXPECT_TRUE(cluster.run({job.call}).ok());
    return static_cast<double>(cluster.last_run_ps());
  };
  EXPECT_NEAR(time_of(300) / time_of(100), 3.0, 0.1);
}

}  // namespace
}  // namespace work_test
}  // namespace trestle
