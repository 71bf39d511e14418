// Every collective, algorithm and type on memory of a device gives the bits that it gives in host memory, and touches
// device memory through the device's queue only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "conformance/device/device_ranks.h"
#include "engine/prepare/call_bytes.h"
#include "transport/catalog.h"

namespace trestle {
namespace {

// Runs it twice with different data. The second run reuses what the first one left.
std::vector<std::vector<Bytes>> run(const Topology& topology, const DeviceCall& call, DeviceOptions options) {
  DeviceRanks ranks(topology, options);
  std::vector<std::vector<Bytes>> results;
  const Status begun = ranks.begin(call);
  EXPECT_TRUE(begun.ok()) << (begun.ok() ? "" : begun.error().message);
  if (!begun.ok()) return results;
  for (uint64_t again = 1; ranks.finish(); ++again) {
    results.push_back(ranks.results());
    EXPECT_TRUE(ranks.inputs_unchanged());
    if (again == 2) break;
    EXPECT_TRUE(ranks.repeat(call.inputs + again).ok());
  }
  return results;
}

// Some pairs of ranks have peer paths, and buffers of some are open to other devices.
DeviceOptions with_some_paths() {
  DeviceOptions options;
  options.paths = [](int32_t a, int32_t b) { return a == b || (a + b) % 3 != 0; };
  options.open = [](int32_t rank) { return rank % 2 == 0; };
  return options;
}

void expect_same(const Topology& topology, const DeviceCall& call, DeviceOptions options = {}) {
  options.place = MemoryPlace::kHost;
  const auto expected = run(topology, call, options);
  options.place = MemoryPlace::kDevice;
  const auto results = run(topology, call, options);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results == expected) << "the bits differ";
}

DeviceCall call_of(const PrepareRequest& request, const Schedule& schedule, bool in_place) {
  DeviceCall call;
  call.request = [request](int32_t) { return request; };
  call.schedule = schedule;
  call.in_place = in_place;
  call.inputs = 5;
  return call;
}

const std::vector<Collective> kEven = {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                       Collective::kBroadcast, Collective::kReduce,        Collective::kAllToAll,
                                       Collective::kGather,    Collective::kScatter};

void expect_bits_of_host_memory(int32_t ranks, uint64_t count, DeviceOptions options) {
  const Topology topology = device_grid({ranks});
  int ran = 0;
  for (const Collective collective : kEven) {
    for (const Algorithm& algorithm : algorithms()) {
      PrepareRequest request;
      request.collective = collective;
      request.count = count;
      request.root = ranks - 1;
      const Result<Schedule> schedule = schedule_of(request, topology, std::string(algorithm.name), 2);
      if (!schedule.ok()) continue;  // it does not serve this collective
      options.seed = static_cast<uint64_t>(++ran);
      const bool in_place = (ran + ranks) % 2 == 0;  // each algorithm both ways, on different numbers of ranks
      SCOPED_TRACE(std::string(to_string(collective)) + " " + std::string(algorithm.name) +
                   (in_place ? " in place" : ""));
      expect_same(topology, call_of(request, schedule.value(), in_place), options);
    }
  }
  EXPECT_GT(ran, static_cast<int>(kEven.size())) << "hardly any algorithm was tried";
}

class DeviceSizes : public testing::TestWithParam<int32_t> {};

TEST_P(DeviceSizes, EveryAlgorithmGivesTheBitsOfHostMemory) {
  expect_bits_of_host_memory(GetParam(), 3001, {});  // several segments, and an odd end
}

// Steps take turns in two rooms each way, on some ranks or on all.
TEST_P(DeviceSizes, EveryAlgorithmRunsWithLittlePinnedMemory) {
  const int32_t ranks = GetParam();
  for (const int32_t first : {0, ranks / 2}) {
    DeviceOptions options;
    options.segment_bytes = 256;
    options.bounce_bytes = [first](int32_t rank) { return rank >= first ? 1 : kBounceBytes; };
    expect_bits_of_host_memory(ranks, 1001, options);
  }
}

// Over peer paths devices read each other's memory. Pairs without one use bounce buffers in the same calls. Memory that
// peers do not reach is copied out, and read in the bounce buffer.
TEST_P(DeviceSizes, EveryAlgorithmGivesTheBitsOfHostMemoryOverPeerPaths) {
  const int32_t ranks = GetParam();
  DeviceOptions options;
  options.segment_bytes = 512;
  options.open = [](int32_t rank) { return rank % 2 == 0; };
  // All pairs; of more ranks than three some.
  options.paths = [ranks](int32_t a, int32_t b) { return ranks < 4 || a / 2 == b / 2 || a * b % 3 == 1; };
  options.bounce_bytes = [ranks](int32_t rank) { return rank == ranks - 1 ? 1 : kBounceBytes; };
  expect_bits_of_host_memory(ranks, 801, options);
}

// Ranks of different processes read each other's outboxes. Where these are small, many messages find no room, and go
// through host memory on both sides. Pairs without a path do so always.
TEST_P(DeviceSizes, EveryAlgorithmGivesTheBitsOfHostMemoryBetweenProcesses) {
  if (!find_transport("shm").value()->probe().ok()) GTEST_SKIP() << "ranks cannot share memory here";
  const int32_t ranks = GetParam();
  for (const uint64_t rooms : {uint64_t{64}, uint64_t{2}}) {
    DeviceOptions options;
    options.transport = "shm";
    options.outbox_bytes = rooms * Outbox::kUnitBytes;
    options.segment_bytes = 512;
    options.paths = [ranks](int32_t a, int32_t b) { return ranks < 4 || a / 2 == b / 2 || a * b % 3 == 1; };
    expect_bits_of_host_memory(ranks, 801, options);
  }
}

// The partial results that peers read lie in staging.
TEST(DevicePeerPaths, NeedNoPinnedMemory) {
  for (const std::vector<int32_t>& sizes : {std::vector<int32_t>{4}, std::vector<int32_t>{2, 3}}) {
    const Topology topology = device_grid(sizes);
    for (const Collective collective : kEven) {
      SCOPED_TRACE(to_string(collective));
      PrepareRequest request;
      request.collective = collective;
      request.count = 1500;
      request.root = 1;
      DeviceOptions options;
      options.paths = [](int32_t, int32_t) { return true; };
      const DeviceCall call = call_of(request, schedule_of(request, topology, "", 4).value(), false);
      expect_same(topology, call, options);
      DeviceRanks ranks(topology, options);
      ASSERT_TRUE(ranks.begin(call).ok());
      ASSERT_TRUE(ranks.finish());
      for (int32_t r = 0; r < topology.ranks(); ++r) EXPECT_EQ(ranks.device(r).pinned_blocks(), 0u) << "rank " << r;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Device, DeviceSizes, testing::Values(2, 3, 4, 5, 9));

TEST(DeviceCollectives, OfOneRankAreCopies) {
  const Topology topology = device_grid({1});
  for (const Collective collective : kEven) {
    SCOPED_TRACE(to_string(collective));
    PrepareRequest request;
    request.collective = collective;
    request.count = 777;
    expect_same(topology, call_of(request, schedule_of(request, topology, "", 1).value(), false));
  }
}

// Partial results of several dimensions lie in staging, which is device memory too.
TEST(DeviceCollectives, OverSeveralDimensionsStageOnTheDevice) {
  for (const std::vector<int32_t>& sizes : {std::vector<int32_t>{2, 2}, std::vector<int32_t>{2, 3}}) {
    const Topology topology = device_grid(sizes);
    for (const Collective collective : kEven) {
      for (const uint32_t chunks : {1u, 4u}) {
        SCOPED_TRACE(std::string(to_string(collective)) + " chunks " + std::to_string(chunks));
        PrepareRequest request;
        request.collective = collective;
        request.count = 1500;
        request.root = 1;
        expect_same(topology, call_of(request, schedule_of(request, topology, "", chunks).value(), false),
                    chunks == 1 ? DeviceOptions() : with_some_paths());
      }
    }
  }
}

TEST(DeviceCollectives, OfEveryTypeAndOperatorHaveTheBitsOfHostMemory) {
  const Topology topology = device_grid({3});
  for (size_t type = 0; type < kDataTypes; ++type) {
    for (size_t op = 0; op <= kReduceOps; ++op) {
      PrepareRequest request;
      request.type = static_cast<DataType>(type);
      request.op = static_cast<ReduceOp>(op);
      request.count = 1111;
      if (request.op == kPreMulSum) {
        auto custom = std::make_shared<CustomOp>();
        custom->type = request.type;
        fill_elements(custom->immediate.data(), size_of(request.type), request.type, 77);
        request.custom = std::move(custom);
      }
      for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce}) {
        SCOPED_TRACE(std::string(to_string(collective)) + " type " + std::to_string(type) + " op " +
                     std::to_string(op));
        request.collective = collective;
        expect_same(topology, call_of(request, schedule_of(request, topology, "", 1).value(), type % 2 == 0),
                    (type + op) % 2 == 0 ? DeviceOptions() : with_some_paths());
      }
    }
  }
}

// Blocks of lengths l(from, to), one after the other; some are empty.
uint64_t length_of(int32_t from, int32_t to) {
  return static_cast<uint64_t>((from * 5 + to * 3) % 4) * 333;
}

BlockList blocks_of(int32_t ranks, const std::function<uint64_t(int32_t)>& length) {
  BlockList list;
  uint64_t begin = 0;
  for (int32_t r = 0; r < ranks; ++r) {
    list.counts.push_back(length(r));
    list.starts.push_back(begin);
    begin += length(r);
  }
  return list;
}

PrepareRequest uneven_request(Collective collective, int32_t ranks, int32_t root, int32_t rank) {
  PrepareRequest request;
  request.collective = collective;
  request.root = root;
  const BlockList known = blocks_of(ranks, [](int32_t r) { return length_of(r, r + 1); });
  const uint64_t own = length_of(rank, rank + 1);
  UnevenBlocks blocks;
  switch (collective) {
    case Collective::kAllGatherV:
      blocks.received = known;
      break;
    case Collective::kReduceScatterV:
      blocks.sent = known;
      break;
    case Collective::kAllToAllV:
      blocks.sent = blocks_of(ranks, [rank](int32_t to) { return length_of(rank, to); });
      blocks.received = blocks_of(ranks, [rank](int32_t from) { return length_of(from, rank); });
      break;
    case Collective::kGatherV:
      if (rank == root) blocks.received = known;
      break;
    default:
      if (rank == root) blocks.sent = known;
  }
  const uint64_t all = std::max(sum_of(blocks.sent), sum_of(blocks.received));
  const bool one_block = collective == Collective::kGatherV || collective == Collective::kScatterV;
  request.count = one_block ? own : collective == Collective::kAllToAllV ? sum_of(blocks.sent) : all;
  request.blocks = SharedBlocks(std::move(blocks));
  return request;
}

TEST(DeviceCollectives, WithUnevenBlocks) {
  for (const int32_t ranks : {2, 3, 5}) {
    const Topology topology = device_grid({ranks});
    for (const Collective collective : {Collective::kAllGatherV, Collective::kReduceScatterV, Collective::kAllToAllV,
                                        Collective::kGatherV, Collective::kScatterV}) {
      SCOPED_TRACE(std::string(to_string(collective)) + " of " + std::to_string(ranks));
      DeviceCall call;
      call.request = [=](int32_t rank) { return uneven_request(collective, ranks, 1, rank); };
      call.schedule = schedule_of(call.request(0), topology, "", 1).value();
      expect_same(topology, call);
      expect_same(topology, call, with_some_paths());
    }
  }
}

TEST(DeviceCollectives, OfNoElements) {
  const Topology topology = device_grid({3});
  for (const Collective collective : kEven) {
    SCOPED_TRACE(to_string(collective));
    PrepareRequest request;
    request.collective = collective;
    expect_same(topology, call_of(request, schedule_of(request, topology, "", 1).value(), false));
    expect_same(topology, call_of(request, schedule_of(request, topology, "", 1).value(), false), with_some_paths());
  }
}

TEST(DeviceMessages, GoFromDeviceToDevice) {
  const Topology topology = device_grid({2});
  DeviceCall call;
  call.request = [](int32_t rank) {
    PrepareRequest request;
    request.collective = Collective::kSendRecv;
    request.count = 20'000;
    request.root = 0;  // the test's mark of the sender
    request.peer = 1 - rank;
    return request;
  };
  expect_same(topology, call);
  expect_same(topology, call, with_some_paths());
}

// The transport of a rank hands out views of its peers' memory, of its own rings or of buffers. Without peer paths none
// reaches the queue.
TEST(DeviceCollectives, OverEveryTransport) {
  const Topology topology = device_grid({3});
  for (const TransportRow& row : transports()) {
    if (!row.probe().ok()) continue;
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kAllToAll}) {
      SCOPED_TRACE(std::string(row.name) + " " + to_string(collective));
      PrepareRequest request;
      request.collective = collective;
      request.count = 30'000;
      DeviceOptions options;
      options.transport = std::string(row.name);
      options.segment_bytes = 16 * 1024;
      expect_same(topology, call_of(request, schedule_of(request, topology, "", 1).value(), false), options);
    }
  }
}

}  // namespace
}  // namespace trestle
