// Calls on streams of a device through the public header: their order among what else is on these streams.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace cuda_streams_test {
namespace {

// More and less than what small calls carry.
constexpr size_t kCounts[] = {3, 100'000};

struct Rank {
  Rank(Gpu& gpu, trestleComm_t of, size_t count, float value)
      : comm(of),
        cuda(gpu.make_stream()),
        stream(wrapped(cuda)),
        given(gpu.pinned(count, value)),
        buffer(gpu.pinned(count, 0)),
        result(gpu.pinned(count, 0)) {}
  trestleComm_t comm;
  StreamHandle* cuda;
  trestleStream_t stream;
  float* given;
  float* buffer;
  float* result;
};

TEST(CudaStreams, ACallIsBetweenWhatIsBeforeItAndWhatIsBehind) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    for (const size_t count : kCounts) {
      Rank ranks[] = {{gpu, comms[0], count, 1}, {gpu, comms[1], count, 2}};
      driver().hold_streams(true);
      for (int round = 0; round < 3; ++round) {
        for (Rank& rank : ranks) {
          gpu.copy(rank.buffer, round == 0 ? rank.given : rank.result, count, rank.cuda);
          ASSERT_TRUE(succeeded(all_reduce(rank.buffer, count, rank.comm, rank.stream)));
          gpu.copy(rank.result, rank.buffer, count, rank.cuda);
        }
      }
      EXPECT_EQ(trestleStreamQuery(ranks[0].stream), trestleInProgress) << "nothing has come to the call";
      driver().hold_streams(false);
      for (Rank& rank : ranks) {
        ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream)));
        gpu.await_idle(rank.cuda);
        for (const size_t i : {size_t{0}, count - 1}) EXPECT_EQ(rank.result[i], 12) << "three sums, each of both";
        ASSERT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
      }
    }
    destroy(comms);
  });
}

TEST(CudaStreams, AGroupOnSeveralStreamsIsBetweenToo) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    constexpr size_t kCount = 1000;
    Rank ranks[] = {{gpu, comms[0], kCount, 1}, {gpu, comms[1], kCount, 2}};
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (Rank& rank : ranks) {
      gpu.copy(rank.buffer, rank.given, kCount, rank.cuda);
      ASSERT_TRUE(succeeded(all_reduce(rank.buffer, kCount, rank.comm, rank.stream)));
      ASSERT_TRUE(succeeded(all_reduce(rank.result, kCount, rank.comm, rank.stream)));
    }
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (Rank& rank : ranks) {
      gpu.copy(rank.result, rank.buffer, kCount, rank.cuda);
      gpu.await_idle(rank.cuda);
      EXPECT_EQ(rank.result[kCount - 1], 3);
      ASSERT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
    }
    destroy(comms);
  });
}

TEST(CudaStreams, RanksOfAGroupMayShareAStream) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    float* const buffers[] = {gpu.pinned(8, 1), gpu.pinned(8, 2)};
    const trestleStream_t stream = wrapped(gpu.make_stream());
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < 2; ++r) ASSERT_TRUE(succeeded(all_reduce(buffers[r], 8, comms[r], stream)));
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    EXPECT_EQ(buffers[0][7], 3);
    EXPECT_EQ(buffers[1][0], 3);
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    destroy(comms);
  });
}

TEST(CudaStreams, HalvesAndPersistentRequestsAreOrderedOnThem) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({-1});
    StreamHandle* const cuda = gpu.make_stream();
    const trestleStream_t stream = wrapped(cuda);
    float* const given = gpu.pinned(100, 5);
    float* const sent = gpu.pinned(100, 0);
    float* const received = gpu.pinned(100, 0);
    trestleRequest_t halves, whole;
    driver().hold_streams(true);
    gpu.copy(sent, given, 100, cuda);
    ASSERT_TRUE(
        succeeded(trestleAllReduceStart(sent, received, 100, trestleFloat32, trestleSum, comms[0], stream, &halves)));
    ASSERT_TRUE(succeeded(trestleAllReduceFinish(halves, nullptr)));
    driver().hold_streams(false);
    ASSERT_TRUE(succeeded(trestleRequestWait(halves)));
    EXPECT_EQ(received[99], 5);
    ASSERT_TRUE(succeeded(trestleRequestFree(halves)));
    ASSERT_TRUE(
        succeeded(trestleAllReduceInit(sent, received, 100, trestleFloat32, trestleSum, comms[0], stream, &whole)));
    for (float round = 1; round < 4; ++round) {
      std::fill_n(given, 100, round);
      gpu.copy(sent, given, 100, cuda);
      ASSERT_TRUE(succeeded(trestleRequestStart(whole)));
      ASSERT_TRUE(succeeded(trestleRequestWait(whole)));
      EXPECT_EQ(received[0], round);
    }
    ASSERT_TRUE(succeeded(trestleRequestFree(whole)));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    destroy(comms);
  });
}

TEST(CudaStreams, EventsStandForTheStreamOfTheDevice) {
  both_ways([](Gpu& gpu) {
    StreamHandle* const first = gpu.make_stream();
    StreamHandle* const second = gpu.make_stream();
    const trestleStream_t streams[] = {wrapped(first), wrapped(second)};
    float* const from = gpu.pinned(10, 7);
    float* const between = gpu.pinned(10, 0);
    float* const to = gpu.pinned(10, 0);
    trestleEvent_t event;
    ASSERT_TRUE(succeeded(trestleEventCreate(&event)));
    driver().hold_streams(true);
    gpu.copy(between, from, 10, first);
    ASSERT_TRUE(succeeded(trestleEventRecord(event, streams[0])));
    ASSERT_TRUE(succeeded(trestleStreamWaitEvent(streams[1], event)));
    gpu.copy(to, between, 10, second);
    EXPECT_EQ(trestleEventQuery(event), trestleInProgress);
    driver().hold_streams(false);
    ASSERT_TRUE(succeeded(trestleEventSynchronize(event)));
    EXPECT_EQ(between[9], 7);
    gpu.await_idle(second);
    EXPECT_EQ(to[9], 7);
    for (trestleStream_t stream : streams) ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    ASSERT_TRUE(succeeded(trestleEventDestroy(event)));
  });
}

TEST(CudaStreams, DestroyWaitsForTheCalls) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0});
    StreamHandle* const cuda = gpu.make_stream();
    const trestleStream_t stream = wrapped(cuda);
    float* const buffer = gpu.pinned(10, 7);
    driver().hold_streams(true);
    ASSERT_TRUE(succeeded(all_reduce(buffer, 10, comms[0], stream)));
    std::atomic<bool> begun{false};
    std::thread other([&] {
      begun = true;
      EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
    });
    ranks::wait_until([&] { return begun.load(); });
    driver().hold_streams(false);
    other.join();
    gpu.await_idle(cuda);
    destroy(comms);
  });
}

// Marks and gates are used again, also of streams that have not come to them.
TEST(CudaStreams, ManyStreamsOneAfterTheOther) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({-1});
    StreamHandle* const cuda = gpu.make_stream();
    float* const buffer = gpu.pinned(10, 7);
    for (int i = 0; i < 30; ++i) {
      const trestleStream_t stream = wrapped(cuda);
      for (int calls = 0; calls < 3; ++calls) ASSERT_TRUE(succeeded(all_reduce(buffer, 10, comms[0], stream)));
      ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    }
    gpu.await_idle(cuda);
    destroy(comms);
  });
}

// More would fill the driver's queue of the stream, and a thread that waits there may hold up all others.
TEST(CudaStreams, HoldTwoHundredCallsAndThenTheCaller) {
  ranks::isolated([] {
    constexpr int kCalls = 500;
    constexpr int kMostHeld = 200;
    Gpu gpu;
    const auto comms = communicators({0, 0});
    Rank ranks[] = {{gpu, comms[0], 3, 1}, {gpu, comms[1], 3, 1}};
    std::atomic<int> made[2] = {0, 0};
    driver().hold_streams(true);
    std::vector<std::thread> callers;
    for (int r = 0; r < 2; ++r) {
      callers.emplace_back([&, r] {
        for (; made[r] < kCalls; ++made[r])
          ASSERT_TRUE(succeeded(trestleAllReduce(ranks[r].given, ranks[r].buffer, 3, trestleFloat32, trestleSum,
                                                 ranks[r].comm, ranks[r].stream)));
      });
    }
    ranks::wait_until([&] { return made[0] == kMostHeld && made[1] == kMostHeld; });
    driver().hold_streams(false);
    for (std::thread& caller : callers) caller.join();
    for (Rank& rank : ranks) {
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream)));
      gpu.await_idle(rank.cuda);
      EXPECT_EQ(rank.buffer[2], 2);
      ASSERT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
    }
    EXPECT_LE(driver().most_waiting(), 2 * kMostHeld + 2) << "a mark and a gate for each, and what is being done";
    destroy(comms);
  });
}

TEST(CudaStreams, DefaultStreams) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0});
    float* const buffer = gpu.pinned(10, 7);
    for (StreamHandle* const cuda : {static_cast<StreamHandle*>(nullptr), trestle::per_thread_stream()}) {
      trestleStream_t stream;
      driver().set_current(-1);
      EXPECT_TRUE(refused(trestleStreamWrapCuda(&stream, cuda), trestleInvalidUsage, {"current device"}));
      driver().set_current(0);
      ASSERT_TRUE(succeeded(trestleStreamWrapCuda(&stream, cuda)));
      ASSERT_TRUE(succeeded(all_reduce(buffer, 10, comms[0], stream)));
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
      std::thread([&] {
        const trestleResult_t elsewhere = all_reduce(buffer, 10, comms[0], stream);
        if (cuda == nullptr) {
          EXPECT_TRUE(succeeded(elsewhere)) << "the legacy stream is the device's";
        } else {
          EXPECT_TRUE(refused(elsewhere, trestleInvalidUsage, {"cudaStreamPerThread"}));
        }
      }).join();
      ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    }
    driver().set_current(-1);
    destroy(comms);
  });
}

}  // namespace
}  // namespace cuda_streams_test
}  // namespace fake_gpu
