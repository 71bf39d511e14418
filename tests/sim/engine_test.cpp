// The engine over simulated links: right data and the same bits with any delays, and no deadlock with any order of
// starts.
#include <gtest/gtest.h>

#include <cstring>

#include "algorithms/catalog.h"
#include "base/rng.h"
#include "sched/select/select.h"
#include "sim/cluster.h"

namespace trestle {
namespace {

Topology grid(const std::vector<int32_t>& sizes) {
  Topology topology;
  for (int32_t size : sizes) {
    Dimension dimension;
    dimension.size = size;
    dimension.bandwidth_mbps = 100'000;
    dimension.latency_ns = 1000;
    topology.dimensions.push_back(dimension);
  }
  return topology;
}

SimOptions options_for(const Topology& topology, uint64_t seed, uint64_t jitter_ns) {
  SimOptions options;
  for (const Dimension& d : topology.dimensions) options.links.push_back({d.latency_ns, d.bandwidth_mbps});
  options.faults = {seed, jitter_ns};
  options.segment_bytes = 4096;
  options.check_plans = true;
  return options;
}

Schedule schedule_for(Collective collective, uint64_t bytes, const Topology& topology, uint32_t chunks,
                      const char* algo = "") {
  SelectionConfig config;
  config.chunks = chunks;
  config.algo = algo;
  SelectionRequest request;
  request.collective = collective;
  request.bytes = bytes;
  request.element_bytes = 4;
  auto schedule = select_schedule(request, topology, config);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return std::move(schedule).value();
}

// Values whose sums round, so that another order of summation changes the bits.
std::vector<std::vector<float>> rounding_inputs(int32_t ranks, size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<std::vector<float>> inputs(ranks, std::vector<float>(count));
  for (auto& input : inputs) {
    for (float& value : input) value = static_cast<float>(rng.uniform() * 1e3 - 5e2);
  }
  return inputs;
}

struct Job {
  SimCall call;
  std::vector<std::vector<float>> send, recv;
};

Job all_reduce_job(const Topology& topology, size_t count, uint32_t chunks, const char* algo = "") {
  Job job;
  job.send = rounding_inputs(topology.ranks(), count, 7);
  job.recv.assign(topology.ranks(), std::vector<float>(count));
  job.call.request.collective = Collective::kAllReduce;
  job.call.request.count = count;
  job.call.schedule = schedule_for(Collective::kAllReduce, count * 4, topology, chunks, algo);
  for (int32_t r = 0; r < topology.ranks(); ++r) job.call.buffers.push_back({job.send[r].data(), job.recv[r].data()});
  return job;
}

void expect_sums(const Job& job) {
  for (size_t i = 0; i < job.send[0].size(); ++i) {
    double sum = 0;
    for (const auto& input : job.send) sum += input[i];
    for (const auto& output : job.recv) ASSERT_NEAR(output[i], sum, 1e-1) << "element " << i;
  }
  for (const auto& output : job.recv) {
    ASSERT_EQ(0, std::memcmp(output.data(), job.recv[0].data(), output.size() * 4)) << "ranks disagree in bits";
  }
}

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
