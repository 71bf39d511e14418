// The engine over simulated links. Delays of messages and of work do not change a bit of the data. No order of starts
// causes a deadlock.
#include <gtest/gtest.h>

#include <cstring>

#include "algorithms/catalog.h"
#include "sched/model/predict.h"
#include "tests/sim/jobs.h"

namespace trestle {
namespace engine_test {
namespace {

class Grids : public testing::TestWithParam<std::vector<int32_t>> {};

TEST_P(Grids, AllReduceIsRightAndTheSameUnderAnyDelays) {
  const Topology topology = grid(GetParam());
  for (uint32_t chunks : {1u, 3u, 8u}) {
    for (size_t count : {1u, 13u, 5003u, 40000u}) {
      Job reference = all_reduce_job(topology, count, chunks);
      SimCluster quiet(topology, options_for(topology, 0, 0));
      auto time = quiet.run({reference.call});
      ASSERT_TRUE(time.ok()) << time.error().message;
      expect_sums(reference);
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        Job job = all_reduce_job(topology, count, chunks);
        SimOptions options = options_for(topology, seed, 50'000);
        if (seed % 2 == 0) options.work = {.mbps = 50'000, .launch_ns = 700, .most_delay_ns = 40'000};
        SimCluster cluster(topology, options);
        auto jittered = cluster.run({job.call});
        ASSERT_TRUE(jittered.ok()) << jittered.error().message << " seed " << seed;
        ASSERT_EQ(job.recv, reference.recv) << "delays changed bits, seed " << seed;
      }
    }
  }
}

TEST_P(Grids, OperationsStartedInOppositeOrderAllFinish) {
  const Topology topology = grid(GetParam());
  Job a = all_reduce_job(topology, 30'000, 4);
  Job b = all_reduce_job(topology, 20'000, 2);
  std::vector<std::vector<size_t>> starts;
  for (int32_t r = 0; r < topology.ranks(); ++r) {
    starts.push_back(r % 2 == 0 ? std::vector<size_t>{0, 1} : std::vector<size_t>{1, 0});
  }
  SimCluster cluster(topology, options_for(topology, 5, 30'000));
  auto time = cluster.run({a.call, b.call}, starts);
  ASSERT_TRUE(time.ok()) << time.error().message;
  expect_sums(a);
  expect_sums(b);
}

INSTANTIATE_TEST_SUITE_P(Sim, Grids,
                         testing::Values(std::vector<int32_t>{1}, std::vector<int32_t>{2}, std::vector<int32_t>{5},
                                         std::vector<int32_t>{8}, std::vector<int32_t>{4, 2},
                                         std::vector<int32_t>{3, 5}, std::vector<int32_t>{2, 2, 2},
                                         std::vector<int32_t>{2, 3, 4}));

TEST(Prediction, OfALargeAllReduceIsNearTheSimulatedTime) {
  for (const auto& sizes : {std::vector<int32_t>{8}, std::vector<int32_t>{4, 2}}) {
    Topology topology = grid(sizes);
    for (Dimension& dimension : topology.dimensions) dimension.transport = TransportKind::kLoopback;
    const size_t count = 1 << 20;
    Job job = all_reduce_job(topology, count, 8);
    SimOptions options = options_for(topology, 0, 0);
    options.segment_bytes = 16 * 1024;
    SimCluster cluster(topology, options);
    auto time = cluster.run({job.call});
    ASSERT_TRUE(time.ok()) << time.error().message;
    const auto predicted = static_cast<double>(predict_ns(job.call.schedule, topology));
    // The model includes CPU overheads, which simulated links do not have, and moves a phase as one piece.
    EXPECT_LT(predicted / static_cast<double>(time.value()), 2.0);
    EXPECT_GT(predicted / static_cast<double>(time.value()), 0.5);
  }
}

TEST(Deadlock, IsReportedWithWhatIsAwaited) {
  const Topology topology = grid({2});
  Job job = all_reduce_job(topology, 1000, 1);
  SimCluster cluster(topology, options_for(topology, 0, 0));
  // Rank 1 runs another operation number, so neither message ever matches.
  Job other = all_reduce_job(topology, 1000, 1);
  auto result = cluster.run({job.call, other.call}, {{0, 0}, {1, 1}});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("awaiting"), std::string::npos) << result.error().message;
}

}  // namespace
}  // namespace engine_test
}  // namespace trestle
