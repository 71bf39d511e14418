// Statistics of a communicator: exact numbers for known sequences of calls, reads during running operations, and the
// memory that the communicator holds.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <trestle/trestle.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace api_stats_test {
namespace {

trestleCommStats_t stats_of(trestleComm_t comm) {
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  EXPECT_TRUE(ranks::succeeded(trestleCommGetStats(comm, &stats), comm));
  return stats;
}

uint64_t memory_of(trestleComm_t comm, trestleMemStat_t stat) {
  uint64_t value = 0;
  EXPECT_TRUE(ranks::succeeded(trestleCommMemStats(comm, stat, &value), comm));
  return value;
}

void synchronize(trestleComm_t comm) {
  ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
}

struct Expected {
  uint64_t calls;
  uint64_t given;
  uint64_t taken;
};

void expect_calls(const trestleCallStats_t& stats, const Expected& expected, const char* what) {
  EXPECT_EQ(stats.started, expected.calls) << what;
  EXPECT_EQ(stats.completed, expected.calls) << what;
  EXPECT_EQ(stats.failed, 0u) << what;
  EXPECT_EQ(stats.bytesGiven, expected.given) << what;
  EXPECT_EQ(stats.bytesTaken, expected.taken) << what;
}

constexpr size_t kCount = 10'000;
constexpr uint64_t kBytes = kCount * sizeof(float);

// Makes every kind of call at least once, on four ranks.
void known_sequence(int rank, trestleComm_t comm) {
  std::vector<float> a(4 * kCount);
  std::vector<float> b(4 * kCount);
  for (int i = 0; i < 3; ++i) trestleAllReduce(a.data(), b.data(), kCount, trestleFloat32, trestleSum, comm, nullptr);
  trestleAllReduce(a.data(), b.data(), 0, trestleFloat32, trestleSum, comm, nullptr);     // nothing to do
  trestleAllReduce(a.data(), b.data(), 1, trestleFloat32, trestleSum, nullptr, nullptr);  // refused
  trestleReduceScatter(a.data(), b.data(), kCount, trestleFloat32, trestleSum, comm, nullptr);
  trestleAllGather(a.data(), b.data(), kCount, trestleFloat32, comm, nullptr);
  trestleBroadcast(a.data(), b.data(), kCount, trestleFloat32, 2, comm, nullptr);
  trestleReduce(a.data(), b.data(), kCount, trestleFloat32, trestleSum, 3, comm, nullptr);
  trestleAllToAll(a.data(), b.data(), kCount, trestleFloat32, comm, nullptr);
  trestleGather(a.data(), b.data(), kCount, trestleFloat32, 0, comm, nullptr);
  trestleScatter(a.data(), b.data(), kCount, trestleFloat32, 0, comm, nullptr);
  trestleBarrier(comm, nullptr);
  trestleGroupStart();
  trestleSend(a.data(), kCount, trestleFloat32, (rank + 1) % 4, comm, nullptr);
  trestleRecv(b.data(), kCount, trestleFloat32, (rank + 3) % 4, comm, nullptr);
  EXPECT_TRUE(ranks::succeeded(trestleGroupEnd()));
  const size_t counts[] = {kCount, 0, 2 * kCount, 1};
  trestleAllGatherV(a.data(), counts[rank], b.data(), counts, nullptr, trestleFloat32, comm, nullptr);
  trestleGatherV(a.data(), counts[rank], b.data(), counts, nullptr, trestleFloat32, 1, comm, nullptr);
  synchronize(comm);
}

TEST(ApiStats, CountsCallsAndTheirBytesExactly) {
  ranks::on_threads({.ranks = 4, .dims = "2x2"}, [](int rank, trestleComm_t comm) {
    known_sequence(rank, comm);
    const trestleCommStats_t stats = stats_of(comm);
    const auto of = [&](trestleCollective_t collective) { return stats.collective[collective]; };
    const uint64_t n = kBytes;
    const uint64_t mine = std::vector<uint64_t>{n, 0, 2 * n, sizeof(float)}[static_cast<size_t>(rank)];
    const uint64_t all = 3 * n + sizeof(float);
    expect_calls(of(trestleCollAllReduce), {3, 3 * n, 3 * n}, "all-reduce");
    expect_calls(of(trestleCollReduceScatter), {1, 4 * n, n}, "reduce-scatter");
    expect_calls(of(trestleCollAllGather), {1, n, 4 * n}, "all-gather");
    expect_calls(of(trestleCollBroadcast), {1, rank == 2 ? n : 0, n}, "broadcast");
    expect_calls(of(trestleCollReduce), {1, n, rank == 3 ? n : 0}, "reduce");
    expect_calls(of(trestleCollAllToAll), {1, 4 * n, 4 * n}, "all-to-all");
    expect_calls(of(trestleCollGather), {1, n, rank == 0 ? 4 * n : 0}, "gather");
    expect_calls(of(trestleCollScatter), {1, rank == 0 ? 4 * n : 0, n}, "scatter");
    expect_calls(of(trestleCollBarrier), {1, 0, 0}, "barrier");
    expect_calls(of(trestleCollSendRecv), {2, n, n}, "messages");
    expect_calls(of(trestleCollAllGatherV), {1, mine, all}, "all-gather-v");
    expect_calls(of(trestleCollGatherV), {1, mine, rank == 1 ? all : 0}, "gather-v");
    EXPECT_EQ(stats.total.started, 15u);
    EXPECT_EQ(stats.total.completed, 15u);
    uint64_t given = 0;
    for (const trestleCallStats_t& collective : stats.collective) given += collective.bytesGiven;
    EXPECT_EQ(stats.total.bytesGiven, given);
  });
}

TEST(ApiStats, HalvesAndRepetitionsCountEach) {
  ranks::on_threads({.ranks = 4, .dims = "2x2"}, [](int rank, trestleComm_t comm) {
    std::vector<float> data(kCount + 1, 1);
    trestleRequest_t request = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleAllReduceStartInit(data.data(), data.data(), data.size(), trestleFloat32,
                                                           trestleMax, comm, nullptr, &request)));
    EXPECT_EQ(stats_of(comm).total.started, 0u) << "planned, not started";
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(ranks::succeeded(trestleRequestStart(request)));
      ASSERT_TRUE(ranks::succeeded(trestleAllReduceFinish(request, nullptr)));
      ASSERT_TRUE(ranks::succeeded(trestleRequestWait(request)));
    }
    ASSERT_TRUE(ranks::succeeded(trestleRequestFree(request)));
    const trestleCommStats_t stats = stats_of(comm);
    const uint64_t whole = data.size() * sizeof(float);
    const uint64_t shard = (kCount / 4 + (rank == 0 ? 1 : 0)) * sizeof(float);
    expect_calls(stats.collective[trestleCollReduceScatter], {2, 2 * whole, 2 * shard}, "first halves");
    expect_calls(stats.collective[trestleCollAllGather], {2, 2 * shard, 2 * whole}, "second halves");
    EXPECT_EQ(stats.total.started, 4u);
  });
}

struct Moved {
  uint64_t inner;
  uint64_t outer;
};

void expect_moved(const trestleCommStats_t& before, const trestleCommStats_t& after, const Moved& expected,
                  const char* what) {
  const uint64_t bytes[] = {expected.inner, expected.outer};
  for (int d = 0; d < 2; ++d) {
    EXPECT_EQ(after.dimension[d].bytesSent - before.dimension[d].bytesSent, bytes[d]) << what << ", dimension " << d;
    EXPECT_EQ(after.dimension[d].bytesReceived - before.dimension[d].bytesReceived, bytes[d]) << what;
    EXPECT_GT(after.dimension[d].messagesSent, before.dimension[d].messagesSent) << what;
    EXPECT_EQ(after.dimension[d].messagesReceived - before.dimension[d].messagesReceived,
              after.dimension[d].messagesSent - before.dimension[d].messagesSent)
        << what;
  }
}

// Runs rings in both dimensions of a 2x2 grid. Half of the data goes over the inner dimension, half of the rest over
// the outer one.
void bytes_of_rings(trestleComm_t comm) {
  std::vector<float> a(4 * kCount);
  std::vector<float> b(4 * kCount);
  trestleCommStats_t before = stats_of(comm);
  trestleAllReduce(a.data(), b.data(), kCount, trestleFloat32, trestleSum, comm, nullptr);
  synchronize(comm);
  trestleCommStats_t after = stats_of(comm);
  expect_moved(before, after, {kBytes, kBytes / 2}, "all-reduce");
  EXPECT_EQ(after.dimension[0].ranks, 2u);
  EXPECT_EQ(after.dimension[1].ranks, 2u);
  EXPECT_EQ(after.dimension[2].ranks, 0u);
  EXPECT_GT(after.dimension[0].busyNs, 0u);
  before = after;
  trestleReduceScatter(a.data(), b.data(), kCount, trestleFloat32, trestleSum, comm, nullptr);
  synchronize(comm);
  after = stats_of(comm);
  expect_moved(before, after, {2 * kBytes, kBytes}, "reduce-scatter");
  before = after;
  trestleAllGather(a.data(), b.data(), kCount, trestleFloat32, comm, nullptr);
  synchronize(comm);
  after = stats_of(comm);
  expect_moved(before, after, {2 * kBytes, kBytes}, "all-gather");
  EXPECT_EQ(after.total.express, 0u);
  EXPECT_EQ(after.dimension[0].bytesMapped, 0u) << "ordinary memory";
}

const ranks::Settings kRings{.ranks = 4, .dims = "2x2", .algo = "ring,ring", .chunks = 1};

ranks::Env baseline(int) {
  return {{"TRESTLE_SCHED", "baseline"}};
}

TEST(ApiStats, BytesOfDimensionsAreThePlans) {
  ranks::on_threads(
      kRings, [](int, trestleComm_t comm) { bytes_of_rings(comm); }, baseline(0));
}

TEST(ApiStats, BytesOfDimensionsAreThePlansBetweenProcesses) {
  if (!ranks::proofs()) GTEST_SKIP() << "no processes without proofs";
  for (const char* transport : {"shm", "tcp", "shm,tcp"}) {
    ranks::Settings settings = kRings;
    settings.transport = transport;
    ranks::on_processes(
        settings, [](ranks::Process&, trestleComm_t comm) { bytes_of_rings(comm); }, baseline);
  }
}

// For every schedule: the bytes sent in a dimension are received in it.
TEST(ApiStats, WhatIsSentInADimensionIsReceivedThere) {
  static std::atomic<int64_t> open[2];
  static std::atomic<uint64_t> moved;
  ranks::on_threads({.ranks = 4, .dims = "2x2"}, [](int rank, trestleComm_t comm) {
    known_sequence(rank, comm);
    // When this rank's stream has passed its calls, all its sends and receives are complete.
    const trestleCommStats_t stats = stats_of(comm);
    for (int d = 0; d < 2; ++d) {
      open[d] += static_cast<int64_t>(stats.dimension[d].bytesSent - stats.dimension[d].bytesReceived);
      moved += stats.dimension[d].bytesSent;
    }
    ASSERT_TRUE(ranks::succeeded(trestleBarrier(comm, nullptr)));
    synchronize(comm);
    EXPECT_EQ(open[0], 0);
    EXPECT_EQ(open[1], 0);
    EXPECT_GT(moved, kBytes);
  });
}

TEST(ApiStats, ExpressCallsAreCountedAndUseNoDimension) {
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t comm) {
    std::vector<int64_t> data(8, 1);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(
          ranks::succeeded(trestleAllReduce(data.data(), data.data(), 1, trestleInt64, trestleMax, comm, nullptr)));
    }
    synchronize(comm);
    const trestleCommStats_t stats = stats_of(comm);
    EXPECT_EQ(stats.total.started, 100u);
    EXPECT_EQ(stats.total.completed, 100u);
    EXPECT_EQ(stats.total.express, 100u);
    EXPECT_EQ(stats.total.bytesGiven, 800u);
    EXPECT_EQ(stats.total.bytesTaken, 800u);
    EXPECT_EQ(stats.dimension[0].bytesSent, 0u);
    EXPECT_EQ(stats.dimension[0].messagesSent, 0u);
    EXPECT_EQ(stats.dimension[0].busyNs, 0u);
  });
}

TEST(ApiStats, MayBeReadWhileOperationsRun) {
  ranks::on_threads({.ranks = 4, .dims = "2x2"}, [](int, trestleComm_t comm) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back([&] {
        trestleCommStats_t last = TRESTLE_COMM_STATS_INITIALIZER;
        while (!stop) {
          const trestleCommStats_t stats = stats_of(comm);
          EXPECT_GE(stats.total.started, stats.total.completed + stats.total.failed);
          EXPECT_GE(stats.total.completed, last.total.completed);
          EXPECT_GE(stats.elapsedNs, last.elapsedNs);
          EXPECT_GE(stats.waitNs, last.waitNs);
          EXPECT_GE(stats.stagingPeakBytes, last.stagingPeakBytes);
          for (int d = 0; d < 2; ++d) {
            EXPECT_GE(stats.dimension[d].bytesSent, last.dimension[d].bytesSent);
            EXPECT_GE(stats.dimension[d].bytesSent, stats.dimension[d].bytesMapped);
            EXPECT_GE(stats.dimension[d].busyNs, last.dimension[d].busyNs);
          }
          memory_of(comm, trestleMemTotal);
          last = stats;
          std::this_thread::yield();
        }
      });
    }
    std::vector<float> data(kCount);
    for (int i = 0; i < 200; ++i) {
      const size_t count = i % 2 == 0 ? kCount : 2;
      ASSERT_TRUE(ranks::succeeded(
          trestleAllReduce(data.data(), data.data(), count, trestleFloat32, trestleSum, comm, nullptr)));
      if (i % 16 == 0) synchronize(comm);
    }
    synchronize(comm);
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(stats_of(comm).total.completed, 200u);
  });
}

// Rank 1 sends after rank 0 has seen in its statistics that it waits and that the message is in flight.
TEST(ApiStats, TellsOfWaitingAndUseWhileTheyLast) {
  static std::atomic<bool> seen;
  ranks::on_threads({.ranks = 2}, [](int rank, trestleComm_t comm) {
    std::vector<char> data(1000);
    trestleStream_t stream = nullptr;
    trestleEvent_t event = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleStreamCreate(&stream)));
    ASSERT_TRUE(ranks::succeeded(trestleEventCreate(&event)));
    for (int way = 0; way < 3; ++way) {
      if (rank == 1) {
        ranks::wait_until([] { return seen.load(); });
        ASSERT_TRUE(ranks::succeeded(trestleSend(data.data(), 1000, trestleInt8, 0, comm, stream)));
        ASSERT_TRUE(ranks::succeeded(trestleStreamSynchronize(stream)));
        seen = false;
        continue;
      }
      ranks::wait_until([] { return !seen; });  // rank 1 has finished the previous way
      const uint64_t waited = stats_of(comm).waitNs;
      const uint64_t busy = stats_of(comm).dimension[0].busyNs;
      ASSERT_TRUE(ranks::succeeded(trestleRecv(data.data(), 1000, trestleInt8, 1, comm, stream)));
      ASSERT_TRUE(ranks::succeeded(trestleEventRecord(event, stream)));
      std::thread other([&] {
        ranks::wait_until([&] {
          const trestleCommStats_t stats = stats_of(comm);
          return stats.waitNs > waited && stats.dimension[0].busyNs > busy;
        });
        EXPECT_EQ(stats_of(comm).total.started - stats_of(comm).total.completed, 1u);
        seen = true;
      });
      if (way == 0) {
        EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
      } else if (way == 1) {
        EXPECT_TRUE(ranks::succeeded(trestleStreamSynchronize(stream)));
      } else {
        EXPECT_TRUE(ranks::succeeded(trestleEventSynchronize(event)));
      }
      other.join();
    }
    EXPECT_TRUE(ranks::succeeded(trestleEventDestroy(event)));
    EXPECT_TRUE(ranks::succeeded(trestleStreamDestroy(stream)));
  });
}

TEST(ApiStats, CountsMemoryWhereItIsAllocated) {
  ranks::on_threads({.ranks = 4, .dims = "2x2", .algo = "ring,ring"}, [](int rank, trestleComm_t comm) {
    const uint64_t none = memory_of(comm, trestleMemStaging);
    EXPECT_EQ(none, 0u);
    std::vector<float> a(4 * kCount);
    std::vector<float> b(4 * kCount);
    trestleReduceScatter(a.data(), b.data(), kCount, trestleFloat32, trestleSum, comm, nullptr);
    synchronize(comm);
    const trestleCommStats_t stats = stats_of(comm);
    EXPECT_GE(stats.stagingBytes, kBytes) << "partial sums of a reduce-scatter lie in staging";
    EXPECT_EQ(stats.stagingPeakBytes, stats.stagingBytes);
    EXPECT_EQ(memory_of(comm, trestleMemStaging), stats.stagingBytes);
    EXPECT_EQ(memory_of(comm, trestleMemTotal),
              memory_of(comm, trestleMemStaging) + memory_of(comm, trestleMemTransport));
    ASSERT_TRUE(ranks::succeeded(trestleBarrier(comm, nullptr)));
    synchronize(comm);
    static std::atomic<int> done;
    if (rank == 0) {
      const uint64_t before = memory_of(comm, trestleMemAllocated);
      void* memory = nullptr;
      ASSERT_TRUE(ranks::succeeded(trestleMemAlloc(&memory, 100'000)));
      EXPECT_GE(memory_of(comm, trestleMemAllocated), before + 100'000);
      ASSERT_TRUE(ranks::succeeded(trestleMemFree(memory)));
      EXPECT_EQ(memory_of(comm, trestleMemAllocated), before);
    }
    ++done;
    ranks::wait_until([] { return done == 4; });
  });
}

TEST(ApiStats, CountsMappedMessagesAndSegmentsOfSharedMemory) {
  if (!ranks::proofs()) GTEST_SKIP() << "no processes without proofs";
  ranks::on_processes({.ranks = 2, .transport = "shm"}, [](ranks::Process& process, trestleComm_t comm) {
    const uint64_t board = memory_of(comm, trestleMemTransport);
    EXPECT_EQ(board != 0, process.rank == 0) << "the slots of small collectives";
    void* memory = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleMemAlloc(&memory, 4 * kBytes)));
    trestleAllReduce(memory, memory, 4 * kCount, trestleFloat32, trestleSum, comm, nullptr);
    synchronize(comm);
    trestleCommStats_t stats = stats_of(comm);
    EXPECT_EQ(stats.dimension[0].bytesMapped, stats.dimension[0].bytesSent);
    EXPECT_GE(stats.dimension[0].bytesSent, 2 * kBytes);
    const uint64_t control = memory_of(comm, trestleMemTransport);
    EXPECT_GT(control, board) << "its half of the connection with the other";
    std::vector<float> data(4 * kCount);
    const uint64_t mapped = stats.dimension[0].bytesMapped;
    trestleAllReduce(data.data(), data.data(), 4 * kCount, trestleFloat32, trestleSum, comm, nullptr);
    synchronize(comm);
    stats = stats_of(comm);
    EXPECT_EQ(stats.dimension[0].bytesMapped, mapped) << "ordinary memory is copied";
    EXPECT_GT(stats.dimension[0].bytesSent, mapped);
    EXPECT_GT(memory_of(comm, trestleMemTransport), control) << "slots for copies";
    ASSERT_TRUE(ranks::succeeded(trestleMemFree(memory)));
  });
}

TEST(ApiStats, AFailedCommunicatorStillAnswers) {
  ranks::on_threads(ranks::patient({.ranks = 2, .timeout_ms = 200}), [](int rank, trestleComm_t comm) {
    std::vector<char> data(1000);
    const trestleResult_t result = trestleRecv(data.data(), 1000, trestleInt8, 1 - rank, comm, nullptr);
    if (result == trestleSuccess) {
      EXPECT_NE(trestleCommSynchronize(comm), trestleSuccess);
    }
    const trestleCommStats_t stats = stats_of(comm);
    EXPECT_EQ(stats.total.failed, stats.total.started);
    EXPECT_EQ(stats.total.completed, 0u);
    const uint64_t busy = stats.dimension[0].busyNs;
    EXPECT_EQ(stats_of(comm).dimension[0].busyNs, busy) << "nothing is in flight any more";
  });
}

TEST(ApiStats, FillsInAsMuchAsTheCallerKnows) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
    std::memset(reinterpret_cast<char*>(&stats) + offsetof(trestleCommStats_t, elapsedNs), 0x55,
                sizeof stats - offsetof(trestleCommStats_t, elapsedNs));
    stats.size = offsetof(trestleCommStats_t, stagingBytes);
    ASSERT_TRUE(ranks::succeeded(trestleCommGetStats(comm, &stats)));
    EXPECT_NE(stats.elapsedNs, 0x5555555555555555u);
    EXPECT_EQ(stats.stagingBytes, 0x5555555555555555u) << "behind what the caller knows";
    EXPECT_EQ(stats.size, offsetof(trestleCommStats_t, stagingBytes));
    struct Newer {
      trestleCommStats_t known;
      uint64_t later;
    } newer{stats, 17};
    newer.known.size = sizeof newer;
    ASSERT_TRUE(ranks::succeeded(trestleCommGetStats(comm, &newer.known)));
    EXPECT_EQ(newer.known.total.started, 0u);
    EXPECT_EQ(newer.later, 17u);
  });
}

TEST(ApiStats, RefusesWhatIsWrong) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
    EXPECT_TRUE(ranks::refused(trestleCommGetStats(nullptr, &stats), trestleInvalidArgument, {"comm is NULL"}));
    EXPECT_TRUE(ranks::refused(trestleCommGetStats(comm, nullptr), trestleInvalidArgument, {"stats is NULL"}));
    stats.size = 3;
    EXPECT_TRUE(ranks::refused(trestleCommGetStats(comm, &stats), trestleInvalidArgument, {"size is 3"}));
    stats = TRESTLE_COMM_STATS_INITIALIZER;
    stats.magic = 1;
    EXPECT_TRUE(ranks::refused(trestleCommGetStats(comm, &stats), trestleInvalidArgument, {"magic"}));
    uint64_t value = 0;
    EXPECT_TRUE(ranks::refused(trestleCommMemStats(comm, trestleMemTotal, nullptr), trestleInvalidArgument, {"NULL"}));
    EXPECT_TRUE(ranks::refused(trestleCommMemStats(comm, static_cast<trestleMemStat_t>(99), &value),
                               trestleInvalidArgument, {"99", "trestleMemStat_t"}));
    trestleComm_t other = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAll(&other, 1, nullptr)));
    ASSERT_TRUE(ranks::succeeded(trestleCommDestroy(other)));
    stats = TRESTLE_COMM_STATS_INITIALIZER;
    EXPECT_TRUE(ranks::refused(trestleCommGetStats(other, &stats), trestleInvalidUsage, {"destroyed"}));
  });
}

}  // namespace
}  // namespace api_stats_test
}  // namespace api
