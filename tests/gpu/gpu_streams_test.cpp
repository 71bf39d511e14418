// Calls on CUDA streams through the public header, on a GPU: their order among copies on the same streams.
#include <trestle/cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include "device/kernels.h"
#include "gpu/first_device.h"

namespace trestle {
namespace {

constexpr size_t kCount = 1 << 20;
constexpr uint64_t kBytes = kCount * sizeof(float);
constexpr int kRounds = 20;
constexpr int kLaunches = 1000;  // of a graph

testing::AssertionResult succeeded(trestleResult_t result) {
  if (result == trestleSuccess) return testing::AssertionSuccess();
  return testing::AssertionFailure() << trestleGetErrorString(result) << ": " << trestleGetLastError(nullptr);
}

class GpuStreams : public OnFirstDevice {
 protected:
  struct Rank {
    StreamHandle* cuda = nullptr;
    trestleStream_t stream = nullptr;
    std::byte* on_device = nullptr;
    float* pinned = nullptr;
    trestleComm_t comm = nullptr;
  };

  void SetUp() override {
    OnFirstDevice::SetUp();
    if (device_ == nullptr) return;
    trestleComm_t comms[2];
    const int devices[] = {0, 0};
    ASSERT_TRUE(succeeded(trestleCommInitAll(comms, 2, devices)));
    for (size_t r = 0; r < 2; ++r) {
      Rank& rank = ranks_[r];
      rank.comm = comms[r];
      rank.cuda = device_->make_stream(false).value();
      rank.on_device = device_->allocate(kBytes).value();
      rank.pinned = reinterpret_cast<float*>(device_->allocate_pinned(kBytes).value());
      ASSERT_TRUE(succeeded(trestleStreamWrapCuda(&rank.stream, rank.cuda)));
    }
    make_first_calls();
  }
  // They get memory from the driver, which may wait for streams that are held. So both ranks' calls are in one group.
  void make_first_calls() {
    for (const bool pinned : {false, true}) {
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      for (const Rank& rank : ranks_) {
        void* const buffer = pinned ? static_cast<void*>(rank.pinned) : rank.on_device;
        ASSERT_TRUE(
            succeeded(trestleAllReduce(buffer, buffer, kCount, trestleFloat32, trestleSum, rank.comm, rank.stream)));
      }
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
    }
    for (const Rank& rank : ranks_) ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream)));
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    for (Rank& rank : ranks_) {
      EXPECT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
      EXPECT_TRUE(device_->synchronize(rank.cuda).ok());
    }
    for (Rank& rank : ranks_) {
      if (rank.comm != nullptr) {
        EXPECT_TRUE(succeeded(trestleCommDestroy(rank.comm)));
      }
      EXPECT_TRUE(device_->free(rank.on_device).ok());
      EXPECT_TRUE(device_->free_pinned(reinterpret_cast<std::byte*>(rank.pinned)).ok());
      EXPECT_TRUE(device_->destroy_stream(rank.cuda).ok());
    }
    OnFirstDevice::TearDown();
  }
  // The sum of both ranks' data on the device, over pinned memory.
  void submit_round(Rank& rank) {
    auto* const pinned = reinterpret_cast<std::byte*>(rank.pinned);
    ASSERT_TRUE(device_->copy(pinned, rank.on_device, kBytes, rank.cuda).ok());
    ASSERT_TRUE(succeeded(
        trestleAllReduce(rank.pinned, rank.pinned, kCount, trestleFloat32, trestleSum, rank.comm, rank.stream)));
    ASSERT_TRUE(device_->copy(rank.on_device, pinned, kBytes, rank.cuda).ok());
  }

  static void abort(Rank& rank) {
    EXPECT_TRUE(succeeded(trestleCommAbort(rank.comm)));
    rank.comm = nullptr;
  }
  // Whether a held stream comes to its end; says how long that took.
  bool goes_on(const Rank& rank) {
    const auto start = std::chrono::steady_clock::now();
    const bool done = device_->synchronize(rank.cuda).ok();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::cout << "a held stream went on after " << took.count() << " ms" << std::endl;
    return done;
  }

  Rank ranks_[2];
};

TEST_F(GpuStreams, CallsAreOrderedAmongCopies) {
  for (size_t r = 0; r < 2; ++r) {
    std::fill_n(ranks_[r].pinned, kCount, static_cast<float>(r + 1));
    ASSERT_TRUE(
        device_->copy(ranks_[r].on_device, reinterpret_cast<std::byte*>(ranks_[r].pinned), kBytes, ranks_[r].cuda)
            .ok());
  }
  float expected = 3;
  for (int round = 0; round < kRounds; ++round) {
    for (Rank& rank : ranks_) submit_round(rank);
    if (round != 0) expected *= 2;
  }
  for (Rank& rank : ranks_) {
    ASSERT_TRUE(device_->synchronize(rank.cuda).ok());
    for (const size_t i : {size_t{0}, kCount / 2, kCount - 1}) EXPECT_EQ(rank.pinned[i], expected);
    EXPECT_TRUE(succeeded(trestleStreamSynchronize(rank.stream)));
  }
}

// Calls and copies in memory of the device.
TEST_F(GpuStreams, CallsOnDeviceMemoryAreOrderedAmongCopies) {
  for (size_t r = 0; r < 2; ++r) {
    Rank& rank = ranks_[r];
    auto* const pinned = reinterpret_cast<std::byte*>(rank.pinned);
    std::fill_n(rank.pinned, kCount, static_cast<float>(r + 1));
    ASSERT_TRUE(device_->copy(rank.on_device, pinned, kBytes, rank.cuda).ok());
    for (int round = 0; round < kRounds; ++round) {
      ASSERT_TRUE(succeeded(trestleAllReduce(rank.on_device, rank.on_device, kCount, trestleFloat32, trestleSum,
                                             rank.comm, rank.stream)));
    }
    ASSERT_TRUE(device_->copy(pinned, rank.on_device, kBytes, rank.cuda).ok());
  }
  const float expected = 3.F * static_cast<float>(1 << (kRounds - 1));
  for (Rank& rank : ranks_) {
    ASSERT_TRUE(device_->synchronize(rank.cuda).ok());
    for (const size_t i : {size_t{0}, kCount / 2, kCount - 1}) EXPECT_EQ(rank.pinned[i], expected);
    EXPECT_TRUE(succeeded(trestleStreamSynchronize(rank.stream)));
  }
}

// The driver may let the program's calls wait for all work of the device, and so for streams that calls hold, and may
// hold locks meanwhile. Large data goes by messages, small data by one kernel.
TEST_F(GpuStreams, TheProgramAllocatesFreesAndLoadsCodeBesideCalls) {
  const auto call = [&](size_t count) {
    for (Rank& rank : ranks_) {
      ASSERT_TRUE(succeeded(
          trestleAllReduce(rank.on_device, rank.on_device, count, trestleFloat32, trestleMax, rank.comm, rank.stream)));
    }
  };
  const auto finish = [&] {
    for (Rank& rank : ranks_) ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream)));
  };
  call(kCount);  // the library's own memory is there then
  finish();
  std::atomic<bool> ends{false};
  int loops = 0;
  std::thread program([&] {
    for (; !ends || loops < 2; ++loops) {
      EXPECT_TRUE(device_->free(device_->allocate(kBytes).value()).ok());
      EXPECT_TRUE(DeviceKernels::create(*device_).ok());
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    call(kCount);
    call(64);
    if (round % 4 == 3) finish();
  }
  finish();
  ends = true;
  program.join();
  std::cout << "the program allocated, freed and loaded code " << loops << " times beside the calls" << std::endl;
}

// In memory of the device, copies included. Each launch takes the data of its time.
TEST_F(GpuStreams, CapturedCallsRunAtEveryLaunch) {
  GraphHandle* graphs[2];
  for (size_t r = 0; r < 2; ++r) {
    Rank& rank = ranks_[r];
    auto* const pinned = reinterpret_cast<std::byte*>(rank.pinned);
    ASSERT_TRUE(device_->begin_capture(rank.cuda).ok());
    ASSERT_TRUE(device_->copy(rank.on_device, pinned, kBytes, rank.cuda).ok());
    for (int call = 0; call < 3; ++call) {
      ASSERT_TRUE(succeeded(trestleAllReduce(rank.on_device, rank.on_device, kCount, trestleFloat32, trestleSum,
                                             rank.comm, rank.stream)));
    }
    ASSERT_TRUE(device_->copy(pinned, rank.on_device, kBytes, rank.cuda).ok());
    auto graph = device_->end_capture(rank.cuda);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    graphs[r] = graph.value();
  }
  for (int round = 1; round <= kLaunches; ++round) {
    for (size_t r = 0; r < 2; ++r) {
      std::fill_n(ranks_[r].pinned, kCount, static_cast<float>(round * (r == 0 ? 1 : 10)));
      ASSERT_TRUE(device_->launch(graphs[r], ranks_[r].cuda).ok());
    }
    for (const Rank& rank : ranks_) {
      ASSERT_TRUE(device_->synchronize(rank.cuda).ok());
      for (const size_t i : {size_t{0}, kCount / 2, kCount - 1})
        ASSERT_EQ(rank.pinned[i], static_cast<float>(44 * round)) << "round " << round;
    }
  }
  for (GraphHandle* const graph : graphs) EXPECT_TRUE(device_->destroy_graph(graph).ok());
}

// A launch that waits for another rank, and one that finds the communicator gone.
TEST_F(GpuStreams, AGraphWhoseCommunicatorWasAbortedGoesOn) {
  Rank& rank = ranks_[0];
  ASSERT_TRUE(device_->begin_capture(rank.cuda).ok());
  ASSERT_TRUE(succeeded(
      trestleAllReduce(rank.on_device, rank.on_device, kCount, trestleFloat32, trestleSum, rank.comm, rank.stream)));
  GraphHandle* const graph = device_->end_capture(rank.cuda).value();
  ASSERT_TRUE(device_->launch(graph, rank.cuda).ok());  // rank 1 never comes
  abort(rank);
  EXPECT_TRUE(goes_on(rank));
  ASSERT_TRUE(device_->launch(graph, rank.cuda).ok());
  EXPECT_TRUE(goes_on(rank));
  EXPECT_TRUE(device_->destroy_graph(graph).ok());
}

// A driver makes a thread wait that submits more. The library's own work must go on meanwhile.
TEST_F(GpuStreams, MoreWorkBehindACallThanTheStreamHasRoomFor) {
  constexpr int kCopies = 5000;
  ASSERT_TRUE(succeeded(trestleGroupStart()));
  for (Rank& rank : ranks_) {
    std::fill_n(rank.pinned, kCount, 1.5F);
    ASSERT_TRUE(device_->copy(rank.on_device, reinterpret_cast<std::byte*>(rank.pinned), kBytes, rank.cuda).ok());
    ASSERT_TRUE(succeeded(
        trestleAllReduce(rank.on_device, rank.on_device, kCount, trestleFloat32, trestleSum, rank.comm, rank.stream)));
  }
  ASSERT_TRUE(succeeded(trestleGroupEnd()));
  auto* const pinned = reinterpret_cast<std::byte*>(ranks_[0].pinned);
  for (int i = 0; i < kCopies; ++i) {
    ASSERT_TRUE(device_->copy(pinned, ranks_[0].on_device, sizeof(float), ranks_[0].cuda).ok());
  }
  for (Rank& rank : ranks_) ASSERT_TRUE(device_->synchronize(rank.cuda).ok());
  EXPECT_EQ(ranks_[0].pinned[0], 3);
}

TEST_F(GpuStreams, AnAbortLetsTheStreamGoOn) {
  submit_round(ranks_[0]);
  abort(ranks_[0]);
  EXPECT_TRUE(goes_on(ranks_[0]));
  EXPECT_EQ(trestleStreamSynchronize(ranks_[0].stream), trestleAborted);
}

// On device memory, and behind several calls, so that the stream waits at the first gate of many.
TEST_F(GpuStreams, AnAbortOpensTheGatesOfAllCalls) {
  Rank& rank = ranks_[0];
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(succeeded(
        trestleAllReduce(rank.on_device, rank.on_device, kCount, trestleFloat32, trestleSum, rank.comm, rank.stream)));
  }
  EXPECT_FALSE(device_->is_idle(rank.cuda).value()) << "the other rank has called nothing";
  abort(rank);
  EXPECT_TRUE(goes_on(rank));
  EXPECT_EQ(trestleStreamSynchronize(rank.stream), trestleAborted);
}

TEST_F(GpuStreams, TheFailureOfAnotherRankLetsTheStreamGoOn) {
  submit_round(ranks_[0]);
  abort(ranks_[1]);
  EXPECT_TRUE(goes_on(ranks_[0]));
  EXPECT_NE(trestleStreamSynchronize(ranks_[0].stream), trestleSuccess);
  abort(ranks_[0]);
}

TEST_F(GpuStreams, MoreCallsThanTheStreamHasRoomFor) {
  constexpr int kCalls = 3000;  // each takes two places in the stream
  std::fill_n(ranks_[0].pinned, 1, 1.F);
  trestleComm_t alone;
  const int device[] = {0};
  ASSERT_TRUE(succeeded(trestleCommInitAll(&alone, 1, device)));
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(succeeded(
        trestleAllReduce(ranks_[0].pinned, ranks_[0].pinned, 1, trestleFloat32, trestleSum, alone, ranks_[0].stream)));
  }
  EXPECT_TRUE(device_->synchronize(ranks_[0].cuda).ok());
  EXPECT_TRUE(succeeded(trestleStreamSynchronize(ranks_[0].stream)));
  EXPECT_TRUE(succeeded(trestleCommDestroy(alone)));
}

TEST_F(GpuStreams, RefusesMemoryThatWasFreed) {
  std::byte* const freed = device_->allocate(kBytes).value();
  ASSERT_TRUE(device_->free(freed).ok());
  EXPECT_EQ(trestleBroadcast(freed, freed, kCount, trestleFloat32, 0, ranks_[0].comm, nullptr), trestleInvalidArgument);
}

}  // namespace
}  // namespace trestle
