// Small collectives on memory of devices through the public header: one kernel per rank, in the order of the caller's
// streams, where they go another way, and what wrong calls and failures come to.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace cuda_board_test {
namespace {

constexpr size_t kCount = 100;

struct Rank {
  Rank(Gpu& gpu, trestleComm_t of, int on, float value)
      : comm(of), device(on), cuda(gpu.make_stream(on)), stream(wrapped(cuda)) {
    send = memory(gpu, value);
    recv = memory(gpu, -1);
  }
  float* memory(Gpu& gpu, float value) {
    auto* const made = reinterpret_cast<float*>(gpu.device(device).allocate(kMostBytes).value());
    std::fill_n(made, kMostBytes / sizeof(float), value);  // the fake driver's devices have memory of the host
    return made;
  }
  void end(Gpu& gpu) {
    EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
    for (float* const memory : {send, recv})
      EXPECT_TRUE(gpu.device(device).free(reinterpret_cast<std::byte*>(memory)).ok());
  }
  trestleResult_t sum(size_t count = kCount) {
    return trestleAllReduce(send, recv, count, trestleFloat32, trestleSum, comm, stream);
  }

  static constexpr size_t kMostBytes = 256 << 10;
  trestleComm_t comm;
  int device;
  StreamHandle* cuda;
  trestleStream_t stream;
  float* send;
  float* recv;
};

// Ranks on both devices. Rank r has r + 1 in its send buffer.
struct Job {
  Job(Gpu& gpu, const std::vector<int>& devices) : gpu(gpu), comms(communicators(devices)) {
    for (size_t r = 0; r < devices.size(); ++r)
      ranks.emplace_back(gpu, comms[r], devices[r], static_cast<float>(r + 1));
  }
  float total() const { return static_cast<float>(ranks.size() * (ranks.size() + 1)) / 2; }
  void synchronize() {
    for (Rank& rank : ranks) ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream)));
  }
  void end() {
    for (Rank& rank : ranks) rank.end(gpu);
    destroy(comms);
  }
  void abort() {
    for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
    for (Rank& rank : ranks) {
      gpu.await_idle(rank.cuda, rank.device);
      rank.end(gpu);
    }
  }
  Gpu& gpu;
  std::vector<trestleComm_t> comms;
  std::vector<Rank> ranks;
};

void isolated(const std::function<void(Gpu&)>& body) {
  ranks::isolated([&] {
    Gpu gpu;
    body(gpu);
  });
}

bool last_was_of_board() {
  return driver().launched().find("board_") != std::string::npos;
}

// Neither a mark nor a gate goes with them.
TEST(CudaBoard, ACallIsOneKernelInTheCallersStream) {
  isolated([](Gpu& gpu) {
    Job job(gpu, {0, 1, 0});
    driver().hold_streams(true);
    constexpr int kCalls = 50;
    const int before = driver().submitted();
    for (int i = 0; i < kCalls; ++i) {
      for (Rank& rank : job.ranks) ASSERT_TRUE(succeeded(rank.sum()));
    }
    EXPECT_EQ(driver().submitted() - before, 3 * kCalls);
    EXPECT_TRUE(last_was_of_board());
    driver().hold_streams(false);
    job.synchronize();
    for (Rank& rank : job.ranks) EXPECT_EQ(rank.recv[kCount - 1], job.total());
    job.end();
  });
}

// A sum of sums of sums: a call that began early or late would give another one.
TEST(CudaBoard, CallsAreBetweenWhatIsBeforeAndBehind) {
  isolated([](Gpu& gpu) {
    Job job(gpu, {0, 0});
    for (int i = 0; i < 10; ++i) {
      for (Rank& rank : job.ranks) {
        // Small, large, small: the large one is held by gates, and the small ones go between.
        ASSERT_TRUE(succeeded(rank.sum()));
        gpu.copy(rank.send, rank.recv, kCount, rank.cuda, rank.device);
        ASSERT_TRUE(succeeded(rank.sum(60'000)));
        gpu.copy(rank.send, rank.recv, kCount, rank.cuda, rank.device);
      }
    }
    job.synchronize();
    for (Rank& rank : job.ranks) {
      gpu.await_idle(rank.cuda, rank.device);
      EXPECT_EQ(rank.send[kCount - 1], 3.0f * static_cast<float>(1 << 19));
    }
    job.end();
  });
}

TEST(CudaBoard, CallsOnStreamsOfTheHostAndInGroupsAndOfRequestsTakeIt) {
  isolated([](Gpu& gpu) {
    Job job(gpu, {0, 1});
    trestleRequest_t requests[2];
    for (int r = 0; r < 2; ++r) {
      const Rank& rank = job.ranks[r];
      ASSERT_TRUE(succeeded(trestleAllReduceInit(rank.send, rank.recv, kCount, trestleFloat32, trestleMax, rank.comm,
                                                 rank.stream, &requests[r])));
    }
    for (int round = 0; round < 5; ++round) {
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      for (Rank& rank : job.ranks) {
        ASSERT_TRUE(
            succeeded(trestleAllReduce(rank.send, rank.recv, kCount, trestleFloat32, trestleSum, rank.comm, nullptr)));
        ASSERT_TRUE(succeeded(
            trestleBroadcast(rank.send, rank.recv + kCount, kCount, trestleFloat32, 1, rank.comm, rank.stream)));
        ASSERT_TRUE(succeeded(
            trestleAllGather(rank.send, rank.recv + 2 * kCount, kCount, trestleFloat32, rank.comm, rank.stream)));
      }
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
      for (trestleComm_t comm : job.comms) ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
      job.synchronize();
      EXPECT_TRUE(last_was_of_board());
      for (Rank& rank : job.ranks) {
        EXPECT_EQ(rank.recv[0], 3);
        EXPECT_EQ(rank.recv[kCount], 2);
        EXPECT_EQ(rank.recv[3 * kCount], 2);
      }
      for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestStart(request)));
      for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestWait(request)));
      EXPECT_TRUE(last_was_of_board());
      for (Rank& rank : job.ranks) EXPECT_EQ(rank.recv[kCount - 1], 2);
    }
    for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestFree(request)));
    job.end();
  });
}

TEST(CudaBoard, IsChosenBySizeAndSettings) {
  const auto check = [](const char* name, const char* value, size_t count, bool expected) {
    SCOPED_TRACE(testing::Message() << (name == nullptr ? "" : name) << " " << count);
    ranks::isolated([=] {
      if (name != nullptr) ::setenv(name, value, 1);
      Gpu gpu;
      Job job(gpu, {0, 0});
      for (Rank& rank : job.ranks) ASSERT_TRUE(succeeded(rank.sum(count)));
      job.synchronize();
      for (Rank& rank : job.ranks) EXPECT_EQ(rank.recv[count - 1], 3);
      EXPECT_EQ(last_was_of_board(), expected);
      job.end();
    });
  };
  constexpr size_t kMost = 16 << 10;  // 64 KiB
  check(nullptr, nullptr, 1, true);
  check(nullptr, nullptr, kMost, true);
  check(nullptr, nullptr, kMost + 1, false);
  check("TRESTLE_DEVICE_EXPRESS_BYTES", "1K", 256, true);
  check("TRESTLE_DEVICE_EXPRESS_BYTES", "1K", 257, false);
  check("TRESTLE_DEVICE_EXPRESS_BYTES", "0", 1, false);
  check("TRESTLE_EXPRESS", "0", 1, false);
  check("TRESTLE_PEER_ACCESS", "0", 1, false);
  check("TRESTLE_ALGO", "ring", 1, false);
}

// ---- wrong calls, failures

TEST(CudaBoard, CallsThatDifferAreNamed) {
  isolated([](Gpu& gpu) {
    Job job(gpu, {0, 1});
    ASSERT_TRUE(succeeded(job.ranks[0].sum(kCount)));
    ASSERT_TRUE(succeeded(job.ranks[1].sum(kCount + 1)));
    for (Rank& rank : job.ranks) EXPECT_NE(trestleStreamSynchronize(rank.stream), trestleSuccess);
    const std::string text = std::string(trestleGetLastError(job.comms[0])) + trestleGetLastError(job.comms[1]);
    EXPECT_NE(text.find("runs operation 0 as allreduce of float, sum"), std::string::npos) << text;
    job.abort();
  });
}

// One rank has its data on the host, where small calls take another board.
TEST(CudaBoard, PlacesThatDifferAreNamed) {
  isolated([](Gpu& gpu) {
    Job job(gpu, {0, 0});
    float* const pinned = gpu.pinned(kCount, 1);
    ASSERT_TRUE(succeeded(job.ranks[0].sum()));
    ASSERT_TRUE(succeeded(all_reduce(pinned, kCount, job.comms[1], nullptr)));
    EXPECT_NE(trestleStreamSynchronize(job.ranks[0].stream), trestleSuccess);
    EXPECT_NE(trestleCommSynchronize(job.comms[1]), trestleSuccess);
    const std::string text = std::string(trestleGetLastError(job.comms[0])) + trestleGetLastError(job.comms[1]);
    for (const char* place : {"in device memory", "in host memory"})
      EXPECT_NE(text.find(place), std::string::npos) << text;
    job.abort();
  });
}

TEST(CudaBoard, ARankThatDoesNotCallIsNamed) {
  ranks::isolated([] {
    ::setenv("TRESTLE_TIMEOUT", "300ms", 1);
    Gpu gpu;
    Job job(gpu, {0, 1});
    ASSERT_TRUE(succeeded(job.ranks[0].sum()));
    EXPECT_EQ(trestleStreamSynchronize(job.ranks[0].stream), trestleTimeout);
    EXPECT_NE(std::string(trestleGetLastError(job.comms[0])).find("rank 1"), std::string::npos)
        << trestleGetLastError(job.comms[0]);
    gpu.await_idle(job.ranks[0].cuda);  // its kernel was let go
    job.abort();
  });
}

// The failure of one communicator must not become data of another one.
TEST(CudaBoard, ACallBehindAnotherCommunicatorsIsHeldUntilThatIsDone) {
  isolated([](Gpu& gpu) {
    Job first(gpu, {0, 0});
    Job second(gpu, {0, 0});
    Rank& rank = second.ranks[0];
    // Rank 1 of the first communicator never calls.
    ASSERT_TRUE(succeeded(
        trestleAllReduce(rank.send, rank.send, kCount, trestleFloat32, trestleSum, first.comms[0], rank.stream)));
    ASSERT_TRUE(succeeded(rank.sum()));
    ASSERT_TRUE(succeeded(second.ranks[1].sum()));
    for (trestleComm_t comm : first.comms) ASSERT_TRUE(succeeded(trestleCommAbort(comm)));
    EXPECT_NE(trestleStreamSynchronize(rank.stream), trestleSuccess);
    EXPECT_NE(trestleStreamSynchronize(second.ranks[1].stream), trestleSuccess) << "it has summed what nobody sent";
    EXPECT_EQ(second.ranks[1].recv[0], -1);
    for (Rank& one : first.ranks) one.end(gpu);
    second.abort();
  });
}

TEST(CudaBoard, AnAbortLetsEveryStreamGoOn) {
  isolated([](Gpu& gpu) {
    for (const bool held : {false, true}) {
      Job job(gpu, {0, 1});
      Rank& rank = job.ranks[0];
      StreamHandle* const other = gpu.make_stream();
      const trestleStream_t stream = wrapped(other);
      driver().hold_streams(held);
      for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(succeeded(rank.sum()));
        ASSERT_TRUE(
            succeeded(trestleAllReduce(rank.send, rank.recv, kCount, trestleFloat32, trestleSum, rank.comm, stream)));
      }
      ASSERT_TRUE(succeeded(trestleCommAbort(job.comms[0])));
      EXPECT_NE(trestleStreamSynchronize(rank.stream), trestleSuccess);
      driver().hold_streams(false);
      gpu.await_idle(other);
      gpu.await_idle(rank.cuda);
      EXPECT_EQ(rank.recv[0], -1);
      (void)trestleStreamSynchronize(stream);
      ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
      ASSERT_TRUE(succeeded(trestleCommAbort(job.comms[1])));
      for (Rank& one : job.ranks) one.end(gpu);
    }
  });
}

// Ranks leave in order while others still wait for nothing of theirs.
TEST(CudaBoard, ACommunicatorMayEndBeforeTheStreamsHaveComeToItsCalls) {
  isolated([](Gpu& gpu) {
    Job job(gpu, {0, 1});
    for (int i = 0; i < 20; ++i) {
      for (Rank& rank : job.ranks) ASSERT_TRUE(succeeded(rank.sum()));
    }
    std::thread peer([&] { EXPECT_TRUE(succeeded(trestleCommDestroy(job.comms[1]))); });
    EXPECT_TRUE(succeeded(trestleCommDestroy(job.comms[0])));
    peer.join();
    for (Rank& rank : job.ranks) {
      EXPECT_EQ(rank.recv[0], 3);
      rank.end(gpu);
    }
  });
}

// What the driver allocates or waits for must not happen in a call.
TEST(CudaBoard, CallsAskTheDriverForNothingSlow) {
  isolated([](Gpu& gpu) {
    Job job(gpu, {0, 1});
    const auto call = [&] {
      for (Rank& rank : job.ranks) ASSERT_TRUE(succeeded(rank.sum()));
      job.synchronize();
    };
    driver().forbid_slow_calls(true);
    for (int i = 0; i < 10; ++i) call();
    driver().forbid_slow_calls(false);
    job.end();
  });
}

}  // namespace
}  // namespace cuda_board_test
}  // namespace fake_gpu
