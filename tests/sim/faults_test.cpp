// Faults in a simulation: the seed repeats them, they affect all ranks, and all ranks report them.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "sched/select/select.h"
#include "sim/cluster.h"
#include "support/grids.h"

namespace trestle {
namespace faults_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

Topology grid() {
  return grid_of({{4, 80'000, 1000}, {2, 80'000, 1000}});
}

SimCall all_reduce(const Topology& topology) {
  SelectionConfig config;
  config.chunks = 4;
  config.algo = "ring";
  SelectionRequest request;
  request.bytes = 4 * kMiB;
  request.element_bytes = 4;
  SimCall call;
  call.request.count = kMiB;
  call.schedule = select_schedule(request, topology, config).value();
  return call;
}

SimOptions with(const SimFaults& faults) {
  SimOptions options;
  options.links = sim_links(grid(), false);
  options.faults = faults;
  options.segment_bytes = 16 * 1024;
  options.data = false;
  options.timeout_ns = 10 * kSecond;
  return options;
}

uint64_t time_ps(const SimFaults& faults) {
  SimCluster cluster(grid(), with(faults));
  auto time = cluster.run({all_reduce(grid())});
  EXPECT_TRUE(time.ok()) << (time.ok() ? "" : time.error().message);
  return cluster.last_run_ps();
}

TEST(Jitter, OfTheSameSeedRepeats) {
  const uint64_t quiet = time_ps({});
  const uint64_t first = time_ps({.seed = 1, .most_jitter_ns = 5000});
  EXPECT_EQ(time_ps({.seed = 1, .most_jitter_ns = 5000}), first);
  EXPECT_NE(time_ps({.seed = 2, .most_jitter_ns = 5000}), first);
  EXPECT_GT(first, quiet);
}

TEST(Slow, RankHoldsUpEverybody) {
  const uint64_t quiet = time_ps({});
  const uint64_t slow = time_ps({.slow_ranks = {{3, 400}}});
  EXPECT_GT(slow, 3 * quiet);
  EXPECT_LT(slow, 5 * quiet);
}

TEST(Slow, LinkHoldsUpItsDimensionOnly) {
  const uint64_t quiet = time_ps({});
  const uint64_t inner = time_ps({.slow_links = {{3, 0, 300}}});
  const uint64_t outer = time_ps({.slow_links = {{3, 1, 300}}});
  EXPECT_GT(inner, outer);
  EXPECT_GT(outer, quiet - 1);
  EXPECT_GT(inner, 2 * quiet);
}

TEST(Dead, LinkEndsEverybodyWithWhatWasAwaited) {
  const Topology topology = grid();
  SimCluster cluster(topology, with({.dead_links = {{5, 0, 100'000}}}));
  auto result = cluster.run({all_reduce(topology)});
  ASSERT_FALSE(result.ok());
  int awaiting_the_rank = 0;
  for (const auto& outcome : cluster.outcomes()) {
    ASSERT_NE(outcome, nullptr);
    EXPECT_EQ(outcome->code, Code::kTimeout);
    EXPECT_NE(outcome->message.find("awaiting"), std::string::npos) << outcome->message;
    awaiting_the_rank += outcome->message.find("of rank 5") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(awaiting_the_rank, 1);
}

TEST(Dead, LinkThatNobodyNeedsAnyMoreHurtsNobody) {
  const uint64_t quiet_ps = time_ps({});
  EXPECT_EQ(time_ps({.dead_links = {{5, 0, quiet_ps / 1000 + 1}}}), quiet_ps);
}

TEST(Dead, LinkWithoutADeadlineIsReportedAtOnce) {
  const Topology topology = grid();
  SimOptions options = with({.dead_links = {{5, 1, 0}}});
  options.timeout_ns = 0;
  SimCluster cluster(topology, options);
  auto result = cluster.run({all_reduce(topology)});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("no rank can make progress"), std::string::npos) << result.error().message;
}

}  // namespace
}  // namespace faults_test
}  // namespace trestle
