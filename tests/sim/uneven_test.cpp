// Blocks of very different sizes pass through the same scratch memory one after the other. A long block must not come
// while the one before the short ones is still being sent.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/sim/jobs.h"

namespace trestle {
namespace uneven_test {
namespace {

// A reduce-scatter-v of int32, whose sums are exact.
struct ScatterJob {
  ScatterJob(const Topology& topology, const std::vector<uint64_t>& counts, const char* algorithm) {
    const auto ranks = static_cast<size_t>(topology.ranks());
    UnevenBlocks blocks;
    blocks.sent.counts = counts;
    for (const uint64_t count : counts) {
      blocks.sent.starts.push_back(total);
      total += count;
    }
    call.request.collective = Collective::kReduceScatterV;
    call.request.count = total;
    call.request.type = DataType::kInt32;
    call.request.blocks = SharedBlocks(blocks);
    SelectionConfig config;
    config.chunks = 1;
    config.algo = algorithm;
    SelectionRequest selection;
    selection.collective = Collective::kReduceScatterV;
    selection.bytes = total * 4;
    selection.element_bytes = 4;
    for (const uint64_t count : counts) selection.blocks.push_back(count * 4);
    auto schedule = select_schedule(selection, topology, config);
    EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
    call.schedule = std::move(schedule).value();
    for (size_t r = 0; r < ranks; ++r) {
      send.emplace_back(total);
      for (size_t i = 0; i < total; ++i) send[r][i] = static_cast<int32_t>((r + 1) * 1000 + i % 997);
      recv.emplace_back(std::max<uint64_t>(counts[r], 1));
    }
    for (size_t r = 0; r < ranks; ++r) call.buffers.push_back({send[r].data(), recv[r].data()});
  }
  void expect_sums(const std::vector<uint64_t>& counts) const {
    size_t at = 0;
    for (size_t r = 0; r < counts.size(); ++r) {
      for (size_t i = 0; i < counts[r]; ++i, ++at) {
        int32_t sum = 0;
        for (const auto& input : send) sum += input[at];
        ASSERT_EQ(recv[r][i], sum) << "rank " << r << " element " << i;
      }
    }
  }
  uint64_t total = 0;
  std::vector<std::vector<int32_t>> send, recv;
  SimCall call;
};

TEST(UnevenBlocks, ALongBlockWaitsForTheOneBeforeTheShortOnes) {
  const Topology topology = grid({8});
  const std::vector<std::vector<uint64_t>> shapes = {{10'000, 25, 800, 31, 10'000, 170, 1, 0},
                                                     {10'000, 1, 10'000, 1, 10'000, 1, 10'000, 1},
                                                     {1, 10'000, 0, 9'999, 0, 10'000, 0, 1},
                                                     {10'000, 0, 0, 0, 10'000, 0, 0, 0},
                                                     {5'000, 5'001, 5'000, 5'001, 1, 2, 3, 4}};
  for (const char* algorithm : {"*ring", "*hd", "*direct"}) {
    for (const std::vector<uint64_t>& counts : shapes) {
      for (uint64_t seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(testing::Message() << algorithm << " seed " << seed << " first block " << counts[0]);
        ScatterJob job(topology, counts, algorithm);
        SimOptions options = options_for(topology, seed, 200'000);
        // One rank reads slowly, so its neighbour's memory stays in use for long.
        options.work = {.mbps = 40'000, .launch_ns = 500, .most_delay_ns = 100'000};
        options.faults.slow_ranks = {{static_cast<int32_t>(seed % 8), 2000}};
        SimCluster cluster(topology, options);
        const auto time = cluster.run({job.call});
        ASSERT_TRUE(time.ok()) << time.error().message;
        job.expect_sums(counts);
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace uneven_test
}  // namespace trestle
