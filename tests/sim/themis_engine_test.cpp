// Schedules of the policies themis and auto on the real engine over simulated links. Delays do not change a bit of the
// data, although chunks may differ in their order of dimensions and auto's chunks in size.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/rng.h"
#include "sched/select/select.h"
#include "sim/cluster.h"

namespace trestle {
namespace {

Topology grid(const std::vector<int32_t>& sizes) {
  Topology topology;
  for (int32_t size : sizes) {
    Dimension& dimension = topology.dimensions.emplace_back();
    dimension.size = size;
    // Equal bandwidths: the first dimension has the highest load, so Themis moves chunks.
    dimension.bandwidth_mbps = 100'000;
    dimension.latency_ns = 50;
    dimension.transport = TransportKind::kLoopback;
  }
  return topology;
}

struct Setting {
  std::vector<int32_t> sizes;
  const char* intra;
  const char* policy = "themis";
};

Schedule balanced_schedule(const Topology& topology, Collective collective, uint64_t bytes, const Setting& setting) {
  SelectionConfig config;
  config.policy = setting.policy;
  config.intra = setting.intra;
  config.chunks = 16;
  // A list per dimension requests phases per dimension, which a small operation would not choose.
  config.algo = topology.dimensions.size() == 2 ? "ring,direct" : "ring,direct,hd";
  SelectionRequest request;
  request.collective = collective;
  request.bytes = bytes;
  request.element_bytes = 4;
  auto schedule = select_schedule(request, topology, config);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return std::move(schedule).value();
}

size_t orders_of_phases(const Schedule& schedule) {
  std::set<std::vector<int>> orders;
  for (const ChunkSchedule& chunk : schedule.chunks) {
    std::vector<int> walk;
    for (const PhaseChoice& phase : chunk.phases) walk.push_back(phase.dimension);
    orders.insert(std::move(walk));
  }
  return orders.size();
}

using Buffers = std::vector<std::vector<float>>;

// Small whole numbers, whose sums are exact in any order.
Buffers whole_inputs(int32_t ranks, size_t count) {
  Rng rng(3);
  Buffers inputs(static_cast<size_t>(ranks), std::vector<float>(count));
  for (auto& input : inputs) {
    for (float& value : input) value = static_cast<float>(rng.below(1000)) - 500.0f;
  }
  return inputs;
}

Status run(const Topology& topology, const SimCall& call, uint64_t seed) {
  SimOptions options;
  for (const Dimension& d : topology.dimensions) options.links.push_back({d.latency_ns, d.bandwidth_mbps});
  options.faults.seed = seed;
  options.faults.most_jitter_ns = seed == 0 ? 0 : 50'000;
  options.segment_bytes = 4096;
  options.check_plans = true;
  SimCluster cluster(topology, options);
  auto time = cluster.run({call});
  if (!time.ok()) return std::move(time).error();
  return {};
}

bool unequal(const Schedule& schedule) {
  // The last chunk gets the remainder.
  return std::any_of(schedule.chunks.begin(), schedule.chunks.end() - 1,
                     [&](const ChunkSchedule& chunk) { return chunk.bytes != schedule.chunks[0].bytes; });
}

class OnTheEngine : public testing::TestWithParam<Setting> {};

TEST_P(OnTheEngine, AllReduceHasExactSums) {
  const Topology topology = grid(GetParam().sizes);
  const int32_t ranks = topology.ranks();
  const size_t count = 60'007;
  const Buffers send = whole_inputs(ranks, count);
  std::vector<float> sums(count, 0.0f);
  for (const auto& input : send) {
    for (size_t i = 0; i < count; ++i) sums[i] += input[i];
  }
  const Schedule schedule = balanced_schedule(topology, Collective::kAllReduce, count * 4, GetParam());
  if (GetParam().policy == std::string("auto")) {
    EXPECT_TRUE(unequal(schedule)) << to_string(schedule, topology);
  } else {
    ASSERT_EQ(schedule.chunks.size(), 16u);
  }
  EXPECT_GT(orders_of_phases(schedule), 1u);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Buffers recv(static_cast<size_t>(ranks), std::vector<float>(count));
    SimCall call;
    call.request.collective = Collective::kAllReduce;
    call.request.count = count;
    call.schedule = schedule;
    for (size_t r = 0; r < recv.size(); ++r)
      call.buffers.push_back({const_cast<float*>(send[r].data()), recv[r].data()});
    const Status status = run(topology, call, seed);
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (const auto& output : recv) ASSERT_EQ(output, sums) << "seed " << seed;
  }
}

TEST_P(OnTheEngine, ReduceScatterAndAllGatherGiveEveryRankItsShard) {
  const Topology topology = grid(GetParam().sizes);
  const auto ranks = static_cast<size_t>(topology.ranks());
  const size_t block = 20'003;
  const Buffers send = whole_inputs(topology.ranks(), block * ranks);
  std::vector<float> sums(block * ranks, 0.0f);
  for (const auto& input : send) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += input[i];
  }
  Buffers shards(ranks, std::vector<float>(block));
  Buffers all(ranks, std::vector<float>(block * ranks));
  SimCall scatter, gather;
  scatter.request.collective = Collective::kReduceScatter;
  gather.request.collective = Collective::kAllGather;
  scatter.request.count = gather.request.count = block;
  scatter.schedule = balanced_schedule(topology, Collective::kReduceScatter, block * ranks * 4, GetParam());
  gather.schedule = balanced_schedule(topology, Collective::kAllGather, block * ranks * 4, GetParam());
  EXPECT_GT(orders_of_phases(scatter.schedule), 1u);
  EXPECT_GT(orders_of_phases(gather.schedule), 1u);
  for (size_t r = 0; r < ranks; ++r) {
    scatter.buffers.push_back({const_cast<float*>(send[r].data()), shards[r].data()});
    gather.buffers.push_back({shards[r].data(), all[r].data()});
  }
  Status status = run(topology, scatter, 5);
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (size_t r = 0; r < ranks; ++r) {
    ASSERT_TRUE(std::equal(shards[r].begin(), shards[r].end(), sums.begin() + static_cast<ptrdiff_t>(r * block))) << r;
  }
  status = run(topology, gather, 6);
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (const auto& output : all) ASSERT_EQ(output, sums);
}

INSTANTIATE_TEST_SUITE_P(Sim, OnTheEngine,
                         testing::Values(Setting{{4, 2}, "scf"}, Setting{{4, 2}, "fifo"}, Setting{{4, 4, 2}, "scf"},
                                         Setting{{4, 4, 2}, "fifo"}, Setting{{4, 2}, "scf", "auto"},
                                         Setting{{3, 5}, "scf", "auto"}, Setting{{4, 4, 2}, "scf", "auto"},
                                         Setting{{2, 2, 2}, "scf", "auto"}));

}  // namespace
}  // namespace trestle
