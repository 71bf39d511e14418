// NCCL's interface on memory and streams of devices: the fake driver's, in place of libcuda.so.1.
#include <algorithm>
#include <atomic>
#include <thread>

#include "local/cuda/fake_gpu.h"
#include "local/nccl/nccl_ranks.h"

namespace {

using fake_gpu::driver;
using fake_gpu::Gpu;
using nccl_ranks::refused;
using nccl_ranks::succeeded;
using trestle::StreamHandle;

constexpr size_t kCount = 1000;

cudaStream_t nccl_stream(StreamHandle* stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}

float* memory_of(Gpu& gpu, int device, float value, size_t count = kCount) {
  auto* const memory = reinterpret_cast<float*>(gpu.device(device).allocate(count * sizeof(float)).value());
  std::fill_n(memory, count, value);
  return memory;
}

ncclResult_t sum(float* buffer, ncclComm_t comm, cudaStream_t stream, size_t count = kCount) {
  return ncclAllReduce(buffer, buffer, count, ncclFloat, ncclSum, comm, stream);
}

// All ranks in this process, one on each of these devices.
std::vector<ncclComm_t> communicators(const std::vector<int>& devices) {
  std::vector<ncclComm_t> comms(devices.size());
  EXPECT_TRUE(succeeded(ncclCommInitAll(comms.data(), static_cast<int>(devices.size()), devices.data())));
  return comms;
}

void destroy(const std::vector<ncclComm_t>& comms) {
  for (const ncclComm_t comm : comms) EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
}

int device_of(ncclComm_t comm) {
  int device = -7;
  EXPECT_TRUE(succeeded(ncclCommCuDevice(comm, &device)));
  return device;
}

ncclComm_t alone() {
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  EXPECT_TRUE(succeeded(ncclGetUniqueId(&id)));
  EXPECT_TRUE(succeeded(ncclCommInitRank(&comm, 1, id, 0)));
  return comm;
}

// ---- which device

TEST(NcclDevices, ARankIsOnTheDeviceOfTheThreadThatMakesIt) {
  ranks::isolated([] {
    for (const int current : {1, 0}) {
      driver().set_current(current);
      const ncclComm_t comm = alone();
      EXPECT_EQ(device_of(comm), current);
      driver().set_current(1 - current);
      ncclComm_t split = nullptr;
      ASSERT_TRUE(succeeded(ncclCommSplit(comm, 0, 0, &split, nullptr)));
      EXPECT_EQ(device_of(split), current) << "as its parent";
      destroy({split, comm});
    }
    driver().set_current(-1);
    const ncclComm_t comm = alone();
    EXPECT_EQ(device_of(comm), 0) << "where a thread is that has chosen none";
    destroy({comm});
    EXPECT_EQ(driver().misuse(), "");
  });
}

TEST(NcclDevices, InitAllTakesAListOrAllFromTheFirst) {
  ranks::isolated([] {
    const auto listed = communicators({1, 0});
    EXPECT_EQ(device_of(listed[0]), 1);
    EXPECT_EQ(device_of(listed[1]), 0);
    destroy(listed);
    ncclComm_t counted[2] = {};
    ASSERT_TRUE(succeeded(ncclCommInitAll(counted, 2, nullptr)));
    EXPECT_EQ(device_of(counted[0]), 0);
    EXPECT_EQ(device_of(counted[1]), 1);
    destroy({counted[0], counted[1]});
    const int absent[] = {7};
    EXPECT_TRUE(refused(ncclCommInitAll(counted, 1, absent), ncclInvalidArgument, {"device 7"}));
    EXPECT_TRUE(refused(ncclCommInitAll(counted, -1, nullptr), ncclInvalidArgument, {"nranks is -1"}));
  });
}

TEST(NcclDevices, ARankWithoutADeviceIsAsOnAMachineWithoutCuda) {
  ranks::isolated(
      [] {
        driver().set_current(1);
        const ncclComm_t comm = alone();
        EXPECT_EQ(device_of(comm), -1);
        const auto listed = communicators({1});
        EXPECT_EQ(device_of(listed[0]), -1);
        float number = 7;
        int no_stream = 0;
        EXPECT_TRUE(succeeded(sum(&number, comm, reinterpret_cast<cudaStream_t>(&no_stream), 1))) << "may be anything";
        EXPECT_EQ(number, 7);
        void* memory = nullptr;
        ASSERT_TRUE(succeeded(ncclMemAlloc(&memory, 100)));
        EXPECT_EQ(driver().objects().memory, 0);
        EXPECT_TRUE(succeeded(ncclMemFree(memory)));
        destroy({listed[0], comm});
      },
      {{"TRESTLE_DEVICE", "-1"}});
  ranks::isolated(
      [] {
        driver().set_current(0);
        const ncclComm_t comm = alone();
        EXPECT_EQ(device_of(comm), 1) << "the variable decides";
        destroy({comm});
      },
      {{"TRESTLE_DEVICE", "1"}});
}

TEST(NcclDevices, AProcessWithoutDevicesHasHostMemory) {
  ranks::isolated([] {
    driver().set_devices(0);
    const ncclComm_t comm = alone();
    EXPECT_EQ(device_of(comm), -1);
    float number = 7;
    EXPECT_TRUE(succeeded(sum(&number, comm, nullptr, 1)));
    destroy({comm});
  });
}

// ---- calls

TEST(NcclDevices, OneThreadCallsForTwoDevicesInGroups) {
  fake_gpu::both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 1});
    StreamHandle* const streams[] = {gpu.make_stream(0), gpu.make_stream(1)};
    float* const sums[] = {memory_of(gpu, 0, 1), memory_of(gpu, 1, 2)};
    float* const gathered[] = {memory_of(gpu, 0, 0, 2 * kCount), memory_of(gpu, 1, 0, 2 * kCount)};
    float* const received[] = {memory_of(gpu, 0, 0), memory_of(gpu, 1, 0)};
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(succeeded(ncclGroupStart()));
      for (int r = 0; r < 2; ++r) EXPECT_TRUE(succeeded(sum(sums[r], comms[r], nccl_stream(streams[r]))));
      ASSERT_TRUE(succeeded(ncclGroupEnd()));
    }
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    for (int r = 0; r < 2; ++r) {
      const cudaStream_t stream = nccl_stream(streams[r]);
      EXPECT_TRUE(succeeded(ncclAllGather(sums[r], gathered[r], kCount, ncclFloat, comms[r], stream)));
      EXPECT_TRUE(succeeded(ncclSend(sums[r], kCount, ncclFloat, 1 - r, comms[r], stream)));
      EXPECT_TRUE(succeeded(ncclRecv(received[r], kCount, ncclFloat, 1 - r, comms[r], stream)));
    }
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    for (int r = 0; r < 2; ++r) {
      gpu.await_idle(streams[r], r);
      EXPECT_EQ(std::count(sums[r], sums[r] + kCount, 6.0F), kCount);
      EXPECT_EQ(std::count(gathered[r], gathered[r] + 2 * kCount, 6.0F), 2 * kCount);
      EXPECT_EQ(std::count(received[r], received[r] + kCount, 6.0F), kCount);
    }
    destroy(comms);
  });
}

TEST(NcclDevices, ThreadsCallForADeviceEach) {
  fake_gpu::both_ways([](Gpu& gpu) {
    ncclUniqueId id;
    ASSERT_TRUE(succeeded(ncclGetUniqueId(&id)));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        driver().set_current(rank);
        ncclComm_t comm = nullptr;
        ASSERT_TRUE(succeeded(ncclCommInitRank(&comm, 2, id, rank)));
        StreamHandle* const stream = gpu.make_stream(rank);
        float* const buffer = memory_of(gpu, rank, static_cast<float>(1 + rank));
        for (int call = 0; call < 3; ++call) EXPECT_TRUE(succeeded(sum(buffer, comm, nccl_stream(stream))));
        gpu.await_idle(stream, rank);
        EXPECT_EQ(buffer[kCount - 1], 12);
        EXPECT_TRUE(succeeded(ncclCommFinalize(comm)));
        EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
        driver().set_current(-1);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(NcclDevices, ACallIsBetweenWhatIsBeforeItOnItsStreamAndWhatIsBehind) {
  fake_gpu::both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 1});
    StreamHandle* const streams[] = {gpu.make_stream(0), gpu.make_stream(1)};
    float* const given[] = {gpu.pinned(kCount, 1), gpu.pinned(kCount, 2)};
    float* const buffers[] = {memory_of(gpu, 0, 0), memory_of(gpu, 1, 0)};
    float* const results[] = {gpu.pinned(kCount, 0), gpu.pinned(kCount, 0)};
    driver().hold_streams(true);
    for (int round = 0; round < 3; ++round) {
      for (int r = 0; r < 2; ++r) {
        gpu.copy(buffers[r], round == 0 ? given[r] : results[r], kCount, streams[r], r);
        ASSERT_TRUE(succeeded(sum(buffers[r], comms[r], nccl_stream(streams[r])))) << "nobody waits";
        gpu.copy(results[r], buffers[r], kCount, streams[r], r);
      }
    }
    EXPECT_EQ(results[0][0], 0);
    driver().hold_streams(false);
    for (int r = 0; r < 2; ++r) {
      gpu.await_idle(streams[r], r);
      EXPECT_EQ(results[r][kCount - 1], 12) << "three sums, each of both";
    }
    destroy(comms);
  });
}

// NULL and cudaStreamLegacy are the legacy stream of the communicator's device, whatever the thread's device is.
TEST(NcclDevices, DefaultStreamsAreThoseOfTheCommunicatorsDevice) {
  fake_gpu::both_ways([](Gpu& gpu) {
    ncclComm_t comm = nullptr;
    const int one[] = {1};
    ASSERT_TRUE(succeeded(ncclCommInitAll(&comm, 1, one)));
    float* const buffer = memory_of(gpu, 1, 5);
    for (const int current : {-1, 0, 1}) {
      driver().set_current(current);
      for (const uintptr_t stream : {0, 1, 2}) {
        EXPECT_TRUE(succeeded(sum(buffer, comm, reinterpret_cast<cudaStream_t>(stream)))) << stream << ", " << current;
      }
    }
    std::thread([&] {
      EXPECT_TRUE(succeeded(sum(buffer, comm, reinterpret_cast<cudaStream_t>(uintptr_t{2})))) << "a stream of its own";
    }).join();
    driver().set_current(-1);
    destroy({comm});
    EXPECT_EQ(buffer[0], 5);
  });
}

// Each device has default streams of its own, so one thread may call for several on them.
TEST(NcclDevices, AGroupMayBeOnTheDefaultStreamsOfTwoDevices) {
  fake_gpu::both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 1});
    float* const buffers[] = {memory_of(gpu, 0, 1), memory_of(gpu, 1, 2)};
    for (const uintptr_t stream : {0, 1, 2}) {
      for (int r = 0; r < 2; ++r) std::fill_n(buffers[r], kCount, static_cast<float>(1 + r));
      ASSERT_TRUE(succeeded(ncclGroupStart()));
      for (int r = 0; r < 2; ++r)
        EXPECT_TRUE(succeeded(sum(buffers[r], comms[r], reinterpret_cast<cudaStream_t>(stream))));
      ASSERT_TRUE(succeeded(ncclGroupEnd()));
      for (int r = 0; r < 2; ++r) {
        gpu.await_idle(stream == 2 ? trestle::per_thread_stream() : nullptr, r);
        EXPECT_EQ(std::count(buffers[r], buffers[r] + kCount, 3.0F), kCount) << stream;
      }
    }
    destroy(comms);
  });
}

// Two communicators on one stream, and the ranks call on them in different orders: in a group that is no order at all.
TEST(NcclDevices, CallsOfAGroupOnOneStreamDoNotWaitForEachOther) {
  fake_gpu::both_ways([](Gpu& gpu) {
    const std::vector<ncclComm_t> pairs[] = {communicators({0, 1}), communicators({0, 1})};
    StreamHandle* const streams[] = {gpu.make_stream(0), gpu.make_stream(1)};
    float* buffers[2][2];
    for (int r = 0; r < 2; ++r) {
      for (int pair = 0; pair < 2; ++pair) buffers[pair][r] = memory_of(gpu, r, static_cast<float>(1 + pair));
    }
    std::vector<std::thread> threads;
    for (int r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        ASSERT_TRUE(succeeded(ncclGroupStart()));
        for (const int pair : {r, 1 - r}) {
          EXPECT_TRUE(succeeded(sum(buffers[pair][r], pairs[pair][r], nccl_stream(streams[r]))));
        }
        ASSERT_TRUE(succeeded(ncclGroupEnd()));
        gpu.await_idle(streams[r], r);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(buffers[0][r][kCount - 1], 2);
      EXPECT_EQ(buffers[1][r][kCount - 1], 4);
    }
    destroy(pairs[0]);
    // The other communicators still have streams.
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    for (int r = 0; r < 2; ++r) EXPECT_TRUE(succeeded(sum(buffers[1][r], pairs[1][r], nccl_stream(streams[r]))));
    for (int r = 0; r < 2; ++r) EXPECT_TRUE(succeeded(ncclCommDestroy(pairs[1][r])));
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    for (int r = 0; r < 2; ++r) EXPECT_EQ(buffers[1][r][0], 8);
  });
}

// ---- memory

TEST(NcclDevices, MemAllocGivesMemoryOfTheThreadsDevice) {
  ranks::isolated([] {
    Gpu gpu;
    driver().set_current(1);
    const ncclComm_t comm = alone();
    const int before = driver().objects().memory;
    void* memory = nullptr;
    ASSERT_TRUE(succeeded(ncclMemAlloc(&memory, kCount * sizeof(float))));
    EXPECT_EQ(driver().objects().memory, before + 1);
    auto* const numbers = static_cast<float*>(memory);
    std::fill_n(numbers, kCount, 3.0F);
    void* handle = nullptr;
    EXPECT_TRUE(succeeded(ncclCommRegister(comm, memory, kCount * sizeof(float), &handle)));
    StreamHandle* const stream = gpu.make_stream(1);
    EXPECT_TRUE(succeeded(sum(numbers, comm, nccl_stream(stream))));
    gpu.await_idle(stream, 1);
    EXPECT_EQ(numbers[0], 3);
    EXPECT_TRUE(succeeded(ncclCommDeregister(comm, handle)));
    destroy({comm});
    EXPECT_TRUE(refused(ncclMemAlloc(&memory, 0), ncclInvalidArgument, {"MemAlloc", "size is 0"}));
    driver().set_current(0);
    EXPECT_TRUE(succeeded(ncclMemFree(memory))) << "from anywhere";
    EXPECT_TRUE(succeeded(ncclMemFree(nullptr)));
    driver().set_current(-1);
  });
}

// Also calls of a group, and a stream that the library sees for the first time.
TEST(NcclDevices, CapturedCallsRunAtEveryLaunchOfTheirGraph) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = communicators({0, 0});
    StreamHandle* const streams[] = {gpu.make_stream(0), gpu.make_stream(0)};
    float* const buffers[] = {memory_of(gpu, 0, 1), memory_of(gpu, 0, 1)};
    float* const given = gpu.pinned(kCount, 0);
    float* const results[] = {gpu.pinned(kCount, 0), gpu.pinned(kCount, 0)};
    for (int r = 0; r < 2; ++r) {
      ASSERT_TRUE(gpu.device().begin_capture(streams[r]).ok());
      gpu.copy(buffers[r], given, kCount, streams[r]);
    }
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    for (int r = 0; r < 2; ++r) EXPECT_TRUE(succeeded(sum(buffers[r], comms[r], nccl_stream(streams[r]))));
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    trestle::GraphHandle* graphs[2];
    for (int r = 0; r < 2; ++r) {
      EXPECT_TRUE(succeeded(sum(buffers[r], comms[r], nccl_stream(streams[r])))) << "a second call, without a group";
      gpu.copy(results[r], buffers[r], kCount, streams[r]);
      graphs[r] = gpu.device().end_capture(streams[r]).value();
    }
    for (float round = 1; round < 5; ++round) {
      std::fill_n(given, kCount, round);
      for (int r = 0; r < 2; ++r) ASSERT_TRUE(gpu.device().launch(graphs[r], streams[r]).ok());
      for (int r = 0; r < 2; ++r) {
        gpu.await_idle(streams[r]);
        EXPECT_EQ(results[r][kCount - 1], 4 * round);
      }
    }
    for (trestle::GraphHandle* const graph : graphs) ASSERT_TRUE(gpu.device().destroy_graph(graph).ok());
    destroy(comms);
  });
}

// ---- what goes wrong

TEST(NcclDevices, StreamsAndMemoryOfAnotherDeviceAreRefused) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = communicators({0});
    StreamHandle* const here = gpu.make_stream(0);
    StreamHandle* const there = gpu.make_stream(1);
    float* const buffer = memory_of(gpu, 0, 1);
    float* const elsewhere = memory_of(gpu, 1, 1);
    EXPECT_TRUE(refused(sum(buffer, comms[0], nccl_stream(there)), ncclInvalidArgument, {"AllReduce", "device 1"}));
    EXPECT_TRUE(refused(sum(elsewhere, comms[0], nccl_stream(here)), ncclInvalidArgument, {"device 1"}));
    auto* const foreign = static_cast<StreamHandle*>(driver().foreign_stream());
    EXPECT_TRUE(refused(sum(buffer, comms[0], nccl_stream(foreign)), ncclInvalidArgument, {"AllReduce", "primary"}));
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    EXPECT_TRUE(succeeded(sum(buffer, comms[0], nccl_stream(here))));
    EXPECT_NE(sum(buffer, comms[0], nccl_stream(foreign)), ncclSuccess);
    EXPECT_TRUE(refused(ncclGroupEnd(), ncclInvalidArgument, {"primary"})) << "nothing of the group is done";
    EXPECT_TRUE(succeeded(sum(buffer, comms[0], nccl_stream(here)))) << "the communicator is as it was";
    gpu.await_idle(here);
    destroy(comms);
  });
}

// The call of one rank, for which the other one never comes: what is behind it on the stream waits.
TEST(NcclDevices, AnAbortLetsTheStreamGoOn) {
  for (const int aborting : {0, 1}) {
    SCOPED_TRACE(aborting);
    fake_gpu::both_ways([&](Gpu& gpu) {
      const auto comms = communicators({0, 1});
      StreamHandle* const stream = gpu.make_stream(0);
      float* const buffer = memory_of(gpu, 0, 1);
      float* const from = gpu.pinned(1, 7);
      float* const behind = gpu.pinned(kCount, 0);
      ASSERT_TRUE(succeeded(sum(buffer, comms[0], nccl_stream(stream))));
      gpu.copy(behind, from, 1, stream);
      ncclResult_t state = ncclInternalError;
      EXPECT_TRUE(succeeded(ncclCommGetAsyncError(comms[0], &state)));
      EXPECT_EQ(state, ncclSuccess);
      ASSERT_TRUE(succeeded(ncclCommAbort(comms[aborting])));
      if (aborting == 1) {
        ranks::wait_until(
            [&] { return ncclCommGetAsyncError(comms[0], &state) != ncclSuccess || state != ncclSuccess; });
        EXPECT_EQ(state, ncclRemoteError);
      }
      gpu.await_idle(stream);
      EXPECT_EQ(behind[0], 7);
      ASSERT_TRUE(succeeded(ncclCommAbort(comms[1 - aborting])));
      // The stream is as good as before, for a new communicator.
      const auto others = communicators({0});
      EXPECT_TRUE(succeeded(sum(buffer, others[0], nccl_stream(stream))));
      gpu.await_idle(stream);
      destroy(others);
    });
  }
}

// A failure of one communicator is none of another that has called on the same stream, also in a group with it.
TEST(NcclDevices, AFailureStaysWithItsCommunicator) {
  fake_gpu::both_ways([](Gpu& gpu) {
    const auto failing = communicators({0, 1});
    const auto well = communicators({0});
    StreamHandle* const stream = gpu.make_stream(0);
    float* const buffers[] = {memory_of(gpu, 0, 1), memory_of(gpu, 0, 2)};
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    EXPECT_TRUE(succeeded(sum(buffers[1], well[0], nccl_stream(stream))));
    EXPECT_TRUE(succeeded(sum(buffers[0], failing[0], nccl_stream(stream))));
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    ASSERT_TRUE(succeeded(ncclCommAbort(failing[0])));
    gpu.await_idle(stream);
    for (int call = 0; call < 2; ++call) {
      EXPECT_TRUE(succeeded(sum(buffers[1], well[0], nccl_stream(stream))));
      gpu.await_idle(stream);
    }
    EXPECT_EQ(buffers[1][0], 2);
    destroy(well);
    ASSERT_TRUE(succeeded(ncclCommAbort(failing[1])));
  });
}

}  // namespace
