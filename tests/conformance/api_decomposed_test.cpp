// The all-reduce in two halves: shards, calls between the halves, persistent requests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "conformance/api_call.h"
#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {
namespace api_decomposed_test {
namespace {

using ranks::refused;
using ranks::succeeded;

const char* const kTransports[] = {"loopback", "shm", "tcp"};

std::vector<trestleRange_t> shard_of(trestleComm_t comm, int rank, size_t count, trestleDataType_t type) {
  int n = 0;
  EXPECT_TRUE(succeeded(trestleShardRanges(comm, rank, count, type, nullptr, &n)));
  std::vector<trestleRange_t> ranges(static_cast<size_t>(n));
  EXPECT_TRUE(succeeded(trestleShardRanges(comm, rank, count, type, ranges.data(), &n)));
  EXPECT_EQ(static_cast<size_t>(n), ranges.size());
  return ranges;
}

// Random floats whose sums round, so that the order of additions changes the bits.
std::vector<float> rounding(size_t count, uint64_t seed) {
  ranks::Random random{seed};
  std::vector<float> values(count);
  for (float& v : values)
    v = static_cast<float>(static_cast<int64_t>(random.next() >> 20) - (int64_t{1} << 43)) * 1e-9f;
  return values;
}

TEST(ApiDecomposed, ShardsPartitionTheBuffer) {
  for (const auto& [n, dims] : {std::pair{1, ""}, {3, "3"}, {6, "3x2"}, {8, "2x2x2"}}) {
    const ranks::Settings settings{.ranks = n, .dims = dims, .transport = "loopback"};
    ranks::on_threads(settings, [&, n = n](int, trestleComm_t comm) {
      for (int t = 0; t < trestleNumTypes; ++t) {
        for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{1009}, size_t{1'000'003}}) {
          std::vector<int> owners(count);
          size_t last = 0;
          for (int r = 0; r < n; ++r) {
            for (const trestleRange_t& range : shard_of(comm, r, count, static_cast<trestleDataType_t>(t))) {
              ASSERT_LE(range.offset + range.count, count);
              for (size_t i = range.offset; i < range.offset + range.count; ++i) ++owners[i];
              EXPECT_GE(range.offset, range.count == 0 ? 0 : last) << "shards lie in the order of the ranks";
              last = range.count == 0 ? last : range.offset + range.count;
            }
          }
          EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), static_cast<int64_t>(count)) << count << " type " << t;
        }
        if (t > 1 && n > 3) break;  // more types of the same size would test nothing new
      }
      int none = 1;
      EXPECT_TRUE(refused(trestleShardRanges(comm, n, 5, trestleInt8, nullptr, &none), trestleInvalidArgument,
                          {"rank " + std::to_string(n)}));
      EXPECT_EQ(none, 1);
    });
  }
}

// Between the halves each rank reads its sums and changes them. All ranks receive the changed values.
void change_between(int rank, int n, trestleComm_t comm, size_t count, bool in_place, bool poll) {
  std::vector<int64_t> send(count);
  for (size_t i = 0; i < count; ++i) send[i] = static_cast<int64_t>(i) * (rank + 1);
  const std::vector<int64_t> before = send;
  std::vector<int64_t> other(in_place ? 0 : count);
  std::vector<int64_t>& recv = in_place ? send : other;
  const int64_t factor = n * (n + 1) / 2;
  trestleRequest_t request = nullptr;
  ASSERT_TRUE(succeeded(
      trestleAllReduceStart(send.data(), recv.data(), count, trestleInt64, trestleSum, comm, nullptr, &request), comm));
  const auto finished = [&] {
    if (!poll) return trestleRequestWait(request);
    int done = 0;
    trestleResult_t result = trestleSuccess;
    while (result == trestleSuccess && done == 0) result = trestleRequestTest(request, &done);
    return result;
  };
  ASSERT_TRUE(succeeded(finished(), comm));
  for (const trestleRange_t& range : shard_of(comm, rank, count, trestleInt64)) {
    for (size_t i = range.offset; i < range.offset + range.count; ++i) {
      ASSERT_EQ(recv[i], static_cast<int64_t>(i) * factor) << "element " << i << " of rank " << rank << "'s shard";
      recv[i] += 1000 + rank;
    }
  }
  ASSERT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr), comm));
  ASSERT_TRUE(succeeded(finished(), comm));
  for (int r = 0; r < n; ++r) {
    for (const trestleRange_t& range : shard_of(comm, r, count, trestleInt64)) {
      for (size_t i = range.offset; i < range.offset + range.count; ++i) {
        ASSERT_EQ(recv[i], static_cast<int64_t>(i) * factor + 1000 + r) << "element " << i << " of " << count;
      }
    }
  }
  if (!in_place) {
    EXPECT_TRUE(send == before) << "the send buffer changed";
  }
  EXPECT_TRUE(succeeded(trestleRequestFree(request)));
}

TEST(ApiDecomposed, ShardsMayBeChangedBetweenTheHalves) {
  const std::pair<int, const char*> shapes[] = {{1, ""}, {2, ""}, {3, ""}, {8, "4x2"}, {8, "2x2x2"}};
  int chunks = -1;
  for (const char* transport : kTransports) {
    for (const auto& [n, dims] : shapes) {
      chunks = chunks == 5 ? -1 : 5;
      const ranks::Settings settings{.ranks = n, .dims = dims, .transport = transport, .chunks = chunks};
      ranks::on_threads(settings, [&, n = n](int rank, trestleComm_t comm) {
        for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1009}, size_t{60'013}}) {
          change_between(rank, n, comm, count, count % 2 == 0, chunks == 5);
          change_between(rank, n, comm, count, count % 2 != 0, chunks != 5);
        }
      });
    }
  }
}

// Both halves together give the same bits as ReduceScatter followed by AllGather, even if sums round.
TEST(ApiDecomposed, SameBitsAsReduceScatterThenAllGather) {
  const std::pair<int, const char*> shapes[] = {{2, ""}, {3, ""}, {7, ""}, {8, "4x2"}, {8, "2x2x2"}};
  for (const char* transport : kTransports) {
    for (const auto& [n, dims] : shapes) {
      const ranks::Settings settings{.ranks = n, .dims = dims, .transport = transport};
      ranks::on_threads(settings, [&, n = n](int rank, trestleComm_t comm) {
        for (const size_t block : {size_t{1}, size_t{37}, size_t{20'011}}) {
          const size_t count = block * static_cast<size_t>(n);
          const std::vector<float> send = rounding(count, static_cast<uint64_t>(rank) + block);
          std::vector<float> a(count);
          std::vector<float> b(count);
          trestleRequest_t request = nullptr;
          ASSERT_TRUE(succeeded(trestleAllReduceStart(send.data(), a.data(), count, trestleFloat32, trestleSum, comm,
                                                      nullptr, &request)));
          ASSERT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr)));
          ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
          EXPECT_TRUE(succeeded(trestleRequestFree(request)));
          float* mine = b.data() + static_cast<size_t>(rank) * block;
          ASSERT_TRUE(
              succeeded(trestleReduceScatter(send.data(), mine, block, trestleFloat32, trestleSum, comm, nullptr)));
          ASSERT_TRUE(succeeded(trestleAllGather(mine, b.data(), block, trestleFloat32, comm, nullptr)));
          ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
          EXPECT_EQ(std::memcmp(a.data(), b.data(), count * sizeof(float)), 0) << settings << ", block " << block;
        }
      });
    }
  }
}

// A request that waits for its Finish does not block the stream. Several requests may wait, and the ranks may finish
// them in any agreed order.
void run_interleaved(int rank, int n, trestleComm_t comm) {
  trestleRequest_t requests[3] = {};
  std::vector<std::vector<int32_t>> data;
  for (int k = 0; k < 3; ++k) {
    data.emplace_back(4001 * (k + 1), rank + k);
    ASSERT_TRUE(succeeded(trestleAllReduceStart(data[k].data(), data[k].data(), data[k].size(), trestleInt32,
                                                trestleSum, comm, nullptr, &requests[k])));
    run_and_verify({.count = 3000, .seed = static_cast<uint64_t>(k) + 1}, rank, n, comm);
  }
  for (const int k : {1, 2, 0}) ASSERT_TRUE(succeeded(trestleAllReduceFinish(requests[k], nullptr), comm));
  for (const int k : {0, 1, 2}) {
    ASSERT_TRUE(succeeded(trestleRequestWait(requests[k]), comm));
    EXPECT_TRUE(data[k] == std::vector<int32_t>(data[k].size(), n * (n - 1) / 2 + n * k)) << k;
    EXPECT_TRUE(succeeded(trestleRequestFree(requests[k])));
  }
}

TEST(ApiDecomposed, RequestsDoNotBlockTheStream) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 3, .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) { run_interleaved(rank, 3, comm); });
  }
}

TEST(ApiDecomposed, PersistentRequestsRunAgainAndAgain) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 4, .dims = "2x2", .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      constexpr size_t kCount = 10'007;
      std::vector<int32_t> send(kCount);
      std::vector<int32_t> recv(kCount);
      trestleRequest_t request = nullptr;
      ASSERT_TRUE(succeeded(trestleAllReduceStartInit(send.data(), recv.data(), kCount, trestleInt32, trestleSum, comm,
                                                      nullptr, &request)));
      for (int round = 0; round < 12; ++round) {
        std::iota(send.begin(), send.end(), round * (rank + 1));
        ASSERT_TRUE(succeeded(trestleRequestStart(request), comm));
        if (round % 2 == 0) {
          ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
        }
        ASSERT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr), comm));
        ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
        for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(recv[i], 4 * static_cast<int32_t>(i) + 10 * round) << round;
      }
      EXPECT_TRUE(succeeded(trestleRequestFree(request)));
    });
  }
}

// A persistent request keeps its plan after calls of any number of other shapes, and works without its communicator's
// handle.
TEST(ApiDecomposed, PersistentRequestsKeepTheirPlans) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    ranks::on_threads(settings, [&](int, trestleComm_t comm) {
      constexpr size_t kElements = 20'011;
      std::vector<int32_t> x(kElements, 1);
      std::vector<int32_t> y(kElements);
      trestleRequest_t request = nullptr;
      ASSERT_TRUE(succeeded(
          trestleAllReduceStartInit(x.data(), y.data(), kElements, trestleInt32, trestleSum, comm, nullptr, &request)));
      for (size_t round = 0; round < 2; ++round) {
        for (size_t k = 0; k < 300; ++k) {
          ASSERT_TRUE(succeeded(
              trestleAllGather(x.data(), y.data(), 5000 + k + 300 * round, trestleInt32, comm, nullptr), comm));
        }
        ASSERT_TRUE(succeeded(trestleRequestStart(request), comm));
        ASSERT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr), comm));
        ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
        EXPECT_EQ(y, std::vector<int32_t>(kElements, 2));
      }
      EXPECT_TRUE(succeeded(trestleRequestFree(request)));
    });
  }
}

// Requests at a wrong moment are refused and remain usable.
TEST(ApiDecomposed, WrongMomentsAreRefused) {
  ranks::Job job;
  job.body = [](ranks::Process& process) {
    const ranks::Settings settings{.ranks = 2, .transport = "shm"};
    ranks::run_threads(settings, [&](int rank, trestleComm_t comm) {
      int32_t x[3] = {1, 2, 3};
      trestleRequest_t request = nullptr;
      if (rank == 1) ranks::meet(process.board, 2);  // waits until rank 0 has checked its request
      ASSERT_TRUE(succeeded(trestleAllReduceStart(x, x, 3, trestleInt32, trestleSum, comm, nullptr, &request), comm));
      if (rank == 0) {
        int done = 7;
        EXPECT_TRUE(succeeded(trestleRequestTest(request, &done)));
        EXPECT_EQ(done, 0);
        EXPECT_TRUE(refused(trestleRequestFree(request), trestleInvalidUsage, {"flight"}));
        EXPECT_TRUE(refused(trestleRequestStart(request), trestleInvalidUsage, {"Init"}));
        ranks::meet(process.board, 2);
      }
      ASSERT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr), comm));
      EXPECT_TRUE(refused(trestleAllReduceFinish(request, nullptr), trestleInvalidUsage, {"Finish"}));
      ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
      EXPECT_EQ(x[2], 6);
      EXPECT_TRUE(succeeded(trestleRequestFree(request)));
      ASSERT_TRUE(succeeded(trestleAllReduceStartInit(x, x, 3, trestleInt32, trestleSum, comm, nullptr, &request)));
      EXPECT_TRUE(refused(trestleAllReduceFinish(request, nullptr), trestleInvalidUsage, {"start"}));
      EXPECT_TRUE(succeeded(trestleRequestFree(request))) << "never started";
    });
  };
  ranks::expect_ended_well(ranks::run(job));
}

// One thread holds all ranks. The halves of a group begin together at the group's end.
void run_halves_in_groups(const std::vector<trestleComm_t>& comms, bool persistent) {
  constexpr size_t kElements = 30'011;
  const size_t n = comms.size();
  std::vector<std::vector<int32_t>> data(n, std::vector<int32_t>(kElements, 1));
  std::vector<trestleRequest_t> requests(n);
  const auto init = [&](size_t r, auto&& function) {
    int32_t* at = data[r].data();
    return function(at, at, kElements, trestleInt32, trestleSum, comms[r], nullptr, &requests[r]);
  };
  for (size_t r = 0; persistent && r < n; ++r) ASSERT_TRUE(succeeded(init(r, trestleAllReduceStartInit)));
  ASSERT_TRUE(succeeded(trestleGroupStart()));
  for (size_t r = 0; r < n; ++r) {
    ASSERT_TRUE(succeeded(persistent ? trestleRequestStart(requests[r]) : init(r, trestleAllReduceStart)));
    int done = 0;
    EXPECT_TRUE(refused(trestleRequestTest(requests[r], &done), trestleInvalidUsage, {"group"}));
    EXPECT_TRUE(refused(trestleRequestWait(requests[r]), trestleInvalidUsage, {"group"}));
    EXPECT_TRUE(refused(trestleRequestFree(requests[r]), trestleInvalidUsage, {"group"}));
  }
  ASSERT_TRUE(succeeded(trestleGroupEnd()));
  for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestWait(request)));
  // One for all ranks, which can progress together there only in a group.
  trestleStream_t stream = nullptr;
  ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
  ASSERT_TRUE(succeeded(trestleGroupStart()));
  for (trestleRequest_t request : requests) EXPECT_TRUE(succeeded(trestleAllReduceFinish(request, stream)));
  ASSERT_TRUE(succeeded(trestleGroupEnd()));
  for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestWait(request)));
  for (const auto& values : data) EXPECT_EQ(values, std::vector<int32_t>(kElements, static_cast<int32_t>(n)));
  for (trestleRequest_t request : requests) EXPECT_TRUE(succeeded(trestleRequestFree(request)));
  EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
}

TEST(ApiDecomposed, HalvesTakePartInGroups) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 3, .transport = transport, .timeout_ms = 20'000};
    ranks::isolated([&] {
      std::vector<trestleComm_t> comms(3);
      const trestleConfig_t config = config_of(settings);
      ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms.data(), 3, &config)));
      for (const bool persistent : {false, true}) run_halves_in_groups(comms, persistent);
      for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

// A refused group does not begin the halves in it. Both halves in one group are refused, because they have no order.
TEST(ApiDecomposed, ARefusedGroupLeavesRequestsAsTheyWere) {
  ranks::isolated([] {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(trestleCommInitAll(&comm, 1, nullptr)));
    int32_t x[3] = {1, 2, 3};
    trestleRequest_t request = nullptr;
    ASSERT_TRUE(succeeded(trestleAllReduceStartInit(x, x, 3, trestleInt32, trestleSum, comm, nullptr, &request)));
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(succeeded(trestleRequestStart(request)));
    EXPECT_TRUE(refused(trestleAllReduceFinish(request, nullptr), trestleInvalidUsage, {"group"}));
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidUsage, {"group"}));
    EXPECT_TRUE(refused(trestleAllReduceFinish(request, nullptr), trestleInvalidUsage, {"not started"}));
    ASSERT_TRUE(succeeded(trestleRequestStart(request)));
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr)));
    EXPECT_TRUE(refused(trestleSend(x, 3, trestleInt32, 9, comm, nullptr), trestleInvalidArgument, {"peer 9"}));
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidArgument, {"peer 9"}));
    EXPECT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr))) << "it is started and not finished";
    EXPECT_TRUE(succeeded(trestleRequestWait(request)));
    EXPECT_TRUE(succeeded(trestleRequestFree(request)));
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

// Counts of 4-byte elements near the largest size of the express path (TRESTLE_EXPRESS_BYTES, of all blocks of the
// longest slot), and counts far from it.
std::vector<size_t> counts_around_the_express_path(trestleCollective_t collective, int ranks) {
  const bool per_block = collective == trestleCollReduceScatter || collective == trestleCollAllToAll;
  const size_t most = 2048 / (per_block ? static_cast<size_t>(ranks) : 1);
  return {1, most / 4, most / 2, most, most + 1, size_t{1} << 14, size_t{1} << 16, size_t{1} << 22};
}

// Predicted times are positive and finite, and grow with the size, whichever path small data takes.
TEST(ApiDecomposed, PredictedTimesGrow) {
  for (const auto& [n, dims] : {std::pair{2, ""}, {5, ""}, {8, "4x2"}}) {
    for (const char* transport : kTransports) {
      const ranks::Settings settings{.ranks = n, .dims = dims, .transport = transport};
      ranks::on_threads(settings, [&](int, trestleComm_t comm) {
        for (int k = trestleCollAllReduce; k <= trestleCollAllToAll; ++k) {
          const auto collective = static_cast<trestleCollective_t>(k);
          double last = 1e-9;
          for (const size_t count : counts_around_the_express_path(collective, settings.ranks)) {
            double us = -1;
            ASSERT_TRUE(succeeded(trestlePredictTime(comm, collective, count, trestleFloat32, &us), comm));
            EXPECT_GE(us, last) << k << " " << count << " " << settings;  // one element more may cost nothing
            EXPECT_LT(us, 1e9) << k << " " << count << " " << settings;
            last = us;
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace api_decomposed_test
}  // namespace api
