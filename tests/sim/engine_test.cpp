// The engine over simulated links. Delays do not change a bit of the data. No order of starts causes a deadlock.
#include <gtest/gtest.h>

#include <cstring>

#include "algorithms/catalog.h"
#include "sched/select/select.h"
#include "tests/sim/jobs.h"

namespace trestle {
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
        SimCluster cluster(topology, options_for(topology, seed, 50'000));
        auto jittered = cluster.run({job.call});
        ASSERT_TRUE(jittered.ok()) << jittered.error().message << " seed " << seed;
        ASSERT_EQ(job.recv, reference.recv) << "delays changed bits, seed " << seed;
      }
    }
  }
}

TEST_P(Grids, ReduceScatterThenAllGatherGiveEveryRankItsOwnShard) {
  const Topology topology = grid(GetParam());
  const int32_t ranks = topology.ranks();
  for (size_t block : {1u, 37u, 3001u}) {
    const auto send = rounding_inputs(ranks, block * ranks, 11);
    std::vector<std::vector<float>> shards(ranks, std::vector<float>(block));
    std::vector<std::vector<float>> all(ranks, std::vector<float>(block * ranks));
    SimCall scatter, gather;
    scatter.request.collective = Collective::kReduceScatter;
    gather.request.collective = Collective::kAllGather;
    scatter.request.count = gather.request.count = block;
    scatter.schedule = schedule_for(Collective::kReduceScatter, block * ranks * 4, topology, 2);
    gather.schedule = schedule_for(Collective::kAllGather, block * ranks * 4, topology, 3);
    for (int32_t r = 0; r < ranks; ++r) {
      scatter.buffers.push_back({const_cast<float*>(send[r].data()), shards[r].data()});
      gather.buffers.push_back({shards[r].data(), all[r].data()});
    }
    SimCluster cluster(topology, options_for(topology, 3, 20'000));
    auto first = cluster.run({scatter});
    ASSERT_TRUE(first.ok()) << first.error().message;
    for (int32_t r = 0; r < ranks; ++r) {
      for (size_t i = 0; i < block; ++i) {
        double sum = 0;
        for (const auto& input : send) sum += input[r * block + i];
        ASSERT_NEAR(shards[r][i], sum, 1e-1) << "rank " << r << " element " << i;
      }
    }
    auto second = cluster.run({gather});
    ASSERT_TRUE(second.ok()) << second.error().message;
    for (const auto& output : all) {
      for (int32_t r = 0; r < ranks; ++r) {
        ASSERT_EQ(0, std::memcmp(output.data() + r * block, shards[r].data(), block * 4)) << "shard " << r;
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

TEST(Algorithms, EveryAlgorithmThatServesReducesOverTheEngine) {
  const Topology topology = grid({7});
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.serves(PhaseKind::kAllReduce, 7)) continue;
    Job job = all_reduce_job(topology, 10'007, 2, std::string(algorithm.name).c_str());
    SimCluster cluster(topology, options_for(topology, 9, 10'000));
    auto time = cluster.run({job.call});
    ASSERT_TRUE(time.ok()) << algorithm.name << ": " << time.error().message;
    expect_sums(job);
  }
}

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
}  // namespace trestle
