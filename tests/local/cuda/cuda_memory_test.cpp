// Which memory a communicator with a device takes, and what it says of the others.
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace cuda_memory_test {
namespace {

constexpr size_t kCount = 1000;

float* memory_of(Gpu& gpu, int index, size_t count = kCount) {
  return reinterpret_cast<float*>(gpu.device(index).allocate(count * sizeof(float)).value());
}

void on_device_zero(const std::function<void(Gpu&, trestleComm_t)>& body) {
  ranks::isolated([&] {
    Gpu gpu;
    const auto comms = communicators({0});
    body(gpu, comms[0]);
    destroy(comms);
  });
}

trestleResult_t all_reduce_into(const float* send, float* recv, trestleComm_t comm, size_t count = kCount) {
  return trestleAllReduce(send, recv, count, trestleFloat32, trestleSum, comm, nullptr);
}

TEST(CudaMemory, TakesHostMemoryOfEveryKind) {
  on_device_zero([](Gpu& gpu, trestleComm_t comm) {
    std::vector<float> ordinary(kCount, 3);
    float* const pinned = gpu.pinned(kCount, 0);
    auto* const managed = static_cast<float*>(driver().managed_memory());
    ASSERT_TRUE(succeeded(all_reduce_into(ordinary.data(), pinned, comm)));
    ASSERT_TRUE(succeeded(all_reduce_into(pinned, managed, comm, 1)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_EQ(pinned[kCount - 1], 3);
    EXPECT_EQ(*managed, 3);
  });
}

// In one group on two devices, and with a pinned buffer beside one of the device.
TEST(CudaMemory, MemoryOfTheDeviceIsReduced) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = communicators({0, 1});
    float* const buffers[] = {memory_of(gpu, 0), memory_of(gpu, 1)};
    for (int r = 0; r < 2; ++r) std::fill_n(buffers[r], kCount, r == 0 ? 1.0f : 2.0f);
    float* const results[] = {gpu.pinned(kCount, 0), buffers[1]};
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < 2; ++r) ASSERT_TRUE(succeeded(all_reduce_into(buffers[r], results[r], comms[r])));
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (int r = 0; r < 2; ++r) {
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comms[r])));
      EXPECT_EQ(results[r][kCount - 1], 3);
    }
    destroy(comms);
  });
}

TEST(CudaMemory, TheHalvesOfACallTakeMemoryOfTheDevice) {
  on_device_zero([](Gpu& gpu, trestleComm_t comm) {
    float* const memory = memory_of(gpu, 0);
    std::fill_n(memory, kCount, 5.0f);
    trestleRequest_t request;
    ASSERT_TRUE(
        succeeded(trestleAllReduceStart(memory, memory, kCount, trestleFloat32, trestleSum, comm, nullptr, &request)));
    ASSERT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_EQ(memory[kCount - 1], 5);
  });
}

// Where a driver lets a caller that asks for memory wait for the device, nobody would ever open the call's own gate.
TEST(CudaMemory, ACallHasItsMemoryBeforeItHoldsItsStream) {
  on_device_zero([](Gpu& gpu, trestleComm_t comm) {
    const trestleStream_t stream = wrapped(gpu.make_stream());
    float factor = 3;
    trestleRedOp_t op;
    ASSERT_TRUE(succeeded(trestleRedOpCreatePreMulSum(&op, &factor, trestleFloat32, trestleScalarHostImmediate, comm)));
    float* const send = memory_of(gpu, 0);
    float* const recv = memory_of(gpu, 0);
    std::fill_n(send, kCount, 2.0f);
    driver().forbid_slow_calls_beside_work(true);
    ASSERT_TRUE(succeeded(trestleReduceScatter(send, recv, kCount, trestleFloat32, op, comm, stream)));
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    driver().forbid_slow_calls_beside_work(false);
    EXPECT_EQ(recv[kCount - 1], 6);
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
  });
}

// A rank whose own block is empty does as the others do, who use their device's memory.
TEST(CudaMemory, ARankWithoutDataOfItsOwnAgreesWithTheOthers) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = communicators({0, 1});
    const size_t counts[] = {kCount, 0};
    const size_t starts[] = {0, kCount};
    float* const send = memory_of(gpu, 0);
    float* const recv = memory_of(gpu, 0);
    std::fill_n(send, kCount, 7.0f);
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    ASSERT_TRUE(succeeded(trestleGatherV(send, kCount, recv, counts, starts, trestleFloat32, 0, comms[0], nullptr)));
    ASSERT_TRUE(succeeded(
        trestleGatherV(memory_of(gpu, 1), 0, nullptr, nullptr, nullptr, trestleFloat32, 0, comms[1], nullptr)));
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_EQ(recv[kCount - 1], 7);
    destroy(comms);
  });
}

// ---- ranks without data

// Rank 0 gathers what rank 1 has. `send` of a rank that has nothing may be anything.
void gather_on_first(const std::vector<trestleComm_t>& comms, const float* const (&send)[2], const size_t (&counts)[2],
                     float* into) {
  const size_t starts[] = {0, counts[0]};
  ASSERT_TRUE(succeeded(trestleGroupStart()));
  ASSERT_TRUE(succeeded(trestleGatherV(send[0], counts[0], into, counts, starts, trestleFloat32, 0, comms[0], nullptr),
                        comms[0]));
  ASSERT_TRUE(succeeded(
      trestleGatherV(send[1], counts[1], nullptr, nullptr, nullptr, trestleFloat32, 0, comms[1], nullptr), comms[1]));
  ASSERT_TRUE(succeeded(trestleGroupEnd()));
  for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
}

// Each with and without the comparison of calls.
void with_and_without_check(const std::function<void(Gpu&)>& body) {
  for (const char* const check : {"0", "1"}) {
    SCOPED_TRACE(std::string("TRESTLE_CHECK=") + check);
    ranks::isolated(
        [&] {
          Gpu gpu;
          body(gpu);
        },
        {{"TRESTLE_CHECK", check}});
  }
}

TEST(CudaMemory, ARankThatGivesNothingGoesWithAnyPlace) {
  with_and_without_check([](Gpu& gpu) {
    std::vector<float> host(kCount, 7);
    std::vector<float> result(kCount);
    float* const device = memory_of(gpu, 0);
    std::fill_n(device, kCount, 8.0f);
    for (const std::vector<int>& devices : {std::vector{0, 1}, std::vector{-1, 1}, std::vector{0, -1}}) {
      const auto comms = communicators(devices);
      SCOPED_TRACE(testing::Message() << "devices " << devices[0] << " and " << devices[1]);
      for (const float* const empty : {static_cast<float*>(nullptr), host.data(), memory_of(gpu, 1)}) {
        std::fill(result.begin(), result.end(), 0.0f);
        gather_on_first(comms, {host.data(), empty}, {kCount, 0}, result.data());
        EXPECT_EQ(result[kCount - 1], 7) << "of host memory";
        if (devices[0] < 0) continue;
        float* const into = memory_of(gpu, 0);
        gather_on_first(comms, {device, empty}, {kCount, 0}, into);
        EXPECT_EQ(into[kCount - 1], 8) << "of device memory";
      }
      destroy(comms);
    }
  });
}

// Two ranks exchange their data, which lies on their devices, and the third one has none for anybody.
TEST(CudaMemory, ARankThatExchangesNothingGoesWithAnyPlace) {
  with_and_without_check([](Gpu& gpu) {
    for (const int third : {0, -1}) {
      const auto comms = communicators({0, 1, third});
      const size_t counts[3][3] = {{0, kCount, 0}, {kCount, 0, 0}, {0, 0, 0}};
      const size_t starts[3] = {0, 0, 0};
      float* received[3] = {memory_of(gpu, 0), memory_of(gpu, 1), nullptr};
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      for (int r = 0; r < 3; ++r) {
        float* const sent = r < 2 ? memory_of(gpu, r) : nullptr;
        if (r < 2) std::fill_n(sent, kCount, static_cast<float>(r + 1));
        ASSERT_TRUE(succeeded(trestleAllToAllV(sent, counts[r], starts, received[r], counts[r], starts, trestleFloat32,
                                               comms[r], nullptr)));
      }
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
      for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      EXPECT_EQ(received[0][kCount - 1], 2);
      EXPECT_EQ(received[1][kCount - 1], 1);
      destroy(comms);
    }
  });
}

// Between a rank with data on its device and one with data in host memory stands one without.
TEST(CudaMemory, RanksWithDataInTwoPlacesAreRefusedBesideOneWithout) {
  with_and_without_check([](Gpu& gpu) {
    const auto comms = communicators({0, 1, 1});
    const size_t counts[3][3] = {{0, 0, kCount}, {0, 0, 0}, {kCount, 0, 0}};
    const size_t starts[3] = {0, 0, 0};
    std::vector<float> host(2 * kCount);
    float* const memory[3][2] = {{memory_of(gpu, 0), memory_of(gpu, 0)}, {}, {host.data(), host.data() + kCount}};
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < 3; ++r) {
      ASSERT_TRUE(succeeded(trestleAllToAllV(memory[r][0], counts[r], starts, memory[r][1], counts[r], starts,
                                             trestleFloat32, comms[r], nullptr)));
    }
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (const int r : {0, 2}) {
      EXPECT_NE(trestleCommSynchronize(comms[r]), trestleSuccess);
      const std::string sentence = trestleGetLastError(comms[r]);
      for (const char* const part : {"alltoallv", "in device memory", "in host memory"}) {
        EXPECT_TRUE(ranks::contains(sentence, part)) << sentence;
      }
    }
    for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
  });
}

// A barrier, and a call of no elements, have no memory that ranks could disagree on.
TEST(CudaMemory, RanksWithAndWithoutADeviceMeetInABarrier) {
  ranks::isolated(
      [] {
        Gpu gpu;
        const auto comms = communicators({0, -1});
        ASSERT_TRUE(succeeded(trestleGroupStart()));
        for (trestleComm_t comm : comms) {
          ASSERT_TRUE(succeeded(trestleBarrier(comm, nullptr)));
          ASSERT_TRUE(succeeded(all_reduce_into(nullptr, nullptr, comm, 0)));
        }
        ASSERT_TRUE(succeeded(trestleGroupEnd()));
        for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
        destroy(comms);
      },
      {{"TRESTLE_CHECK", "1"}});
}

TEST(CudaMemory, BlocksWithGapsMustLieInTheAllocation) {
  on_device_zero([](Gpu& gpu, trestleComm_t comm) {
    const size_t count = kCount;
    const size_t start = 1;
    float* const memory = memory_of(gpu, 0);
    EXPECT_TRUE(
        refused(trestleGatherV(memory_of(gpu, 0), kCount, memory, &count, &start, trestleFloat32, 0, comm, nullptr),
                trestleInvalidArgument, {"receive buffer", "4004 bytes", "4000"}));
  });
}

TEST(CudaMemory, RefusesAScalarThatTheHostCannotRead) {
  on_device_zero([](Gpu& gpu, trestleComm_t comm) {
    trestleRedOp_t op;
    for (const auto residence : {trestleScalarDevice, trestleScalarHostImmediate}) {
      EXPECT_TRUE(refused(trestleRedOpCreatePreMulSum(&op, memory_of(gpu, 1), trestleFloat32, residence, comm),
                          trestleInvalidArgument, {"scalar", "device 1", "host memory"}));
      ASSERT_TRUE(succeeded(trestleRedOpCreatePreMulSum(&op, gpu.pinned(1, 2), trestleFloat32, residence, comm)));
      ASSERT_TRUE(succeeded(trestleRedOpDestroy(op, comm)));
    }
  });
}

TEST(CudaMemory, RefusesMemoryOfAnotherDevice) {
  on_device_zero([](Gpu& gpu, trestleComm_t comm) {
    float* const memory = memory_of(gpu, 1);
    EXPECT_TRUE(refused(all_reduce_into(memory, memory, comm), trestleInvalidArgument,
                        {"AllReduce", "send buffer", "device 1", "device is 0"}));
    EXPECT_TRUE(refused(trestleBroadcast(nullptr, memory, 1, trestleFloat32, 0, comm, nullptr), trestleInvalidArgument,
                        {"Broadcast"}));
  });
}

TEST(CudaMemory, RefusesABufferThatIsLongerThanItsMemory) {
  on_device_zero([](Gpu& gpu, trestleComm_t comm) {
    float* const memory = memory_of(gpu, 0);
    EXPECT_TRUE(refused(all_reduce_into(memory + 1, memory + 1, comm), trestleInvalidArgument, {"4000 bytes", "3996"}));
  });
}

TEST(CudaMemory, RefusesOneBufferHereAndOneThere) {
  on_device_zero([](Gpu& gpu, trestleComm_t comm) {
    float* const memory = memory_of(gpu, 0);
    std::vector<float> ordinary(kCount);
    EXPECT_TRUE(refused(all_reduce_into(ordinary.data(), memory, comm), trestleInvalidArgument,
                        {"receive buffer is memory of device 0", "send buffer is ordinary"}));
    EXPECT_TRUE(refused(all_reduce_into(memory, ordinary.data(), comm), trestleInvalidArgument,
                        {"send buffer is memory of device 0", "receive buffer is ordinary"}));
  });
}

// Memory of a device that was freed is such memory too: its addresses are the driver's, and nothing is there.
TEST(CudaMemory, RefusesMemoryThatIsNotThere) {
  on_device_zero([](Gpu&, trestleComm_t comm) {
    constexpr size_t kPage = 4096;
    void* const pages = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_EQ(munmap(static_cast<char*>(pages) + kPage, kPage), 0);
    auto* const half = static_cast<float*>(pages);
    constexpr size_t kThere = kPage / sizeof(float);
    EXPECT_TRUE(
        refused(all_reduce_into(half, half, comm, kThere + 1), trestleInvalidArgument, {"send buffer", "freed"}));
    ASSERT_TRUE(succeeded(all_reduce_into(half, half, comm, kThere)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    ASSERT_EQ(munmap(pages, kPage), 0);
    EXPECT_TRUE(refused(all_reduce_into(half, half, comm, 1), trestleInvalidArgument, {"send buffer", "freed"}));
  });
}

TEST(CudaMemory, WithoutADeviceNobodyAsksWhatAPointerIs) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = communicators({-1});
    std::vector<float> buffer(kCount, 1);
    const int before = driver().calls();
    ASSERT_TRUE(succeeded(all_reduce_into(buffer.data(), buffer.data(), comms[0])));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comms[0])));
    EXPECT_EQ(driver().calls(), before);
    destroy(comms);
  });
}

TEST(CudaMemory, CommunicatorsOfTwoDevicesInOneGroup) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = communicators({0, 1});
    StreamHandle* const cuda[] = {gpu.make_stream(0), gpu.make_stream(1)};
    const trestleStream_t streams[] = {wrapped(cuda[0]), wrapped(cuda[1])};
    float* const buffers[] = {gpu.pinned(kCount, 1), gpu.pinned(kCount, 2)};
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < 2; ++r) ASSERT_TRUE(succeeded(all_reduce(buffers[r], kCount, comms[r], streams[r])));
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (int r = 0; r < 2; ++r) {
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(streams[r])));
      EXPECT_EQ(buffers[r][kCount - 1], 3);
      ASSERT_TRUE(succeeded(trestleStreamDestroy(streams[r])));
      gpu.await_idle(cuda[r], r);
    }
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    float* const memory = memory_of(gpu, 1);
    EXPECT_NE(all_reduce(memory, kCount, comms[0], nullptr), trestleSuccess);
    EXPECT_TRUE(succeeded(all_reduce(memory, kCount, comms[1], nullptr)));
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidArgument, {"device 1", "device is 0"})) << "the first error";
    destroy(comms);
  });
}

TEST(CudaMemory, ADeviceThatIsNotThereIsRefused) {
  ranks::isolated([] {
    Gpu gpu;
    trestleComm_t comms[2];
    const int devices[] = {7, 0};
    EXPECT_TRUE(refused(trestleCommInitAll(comms, 2, devices), trestleInvalidArgument, {"device 7"}));
    const int other_way[] = {0, 7};
    EXPECT_NE(trestleCommInitAll(comms, 2, other_way), trestleSuccess) << "the other rank is told";
    const int wrong[] = {0, -5};
    EXPECT_TRUE(refused(trestleCommInitAll(comms, 2, wrong), trestleInvalidArgument, {"devlist[1]", "-5"}));
  });
}

TEST(CudaMemory, TheVariableNamesTheDeviceToo) {
  ranks::isolated(
      [] {
        Gpu gpu;
        trestleComm_t comm;
        ASSERT_TRUE(succeeded(trestleCommInitAll(&comm, 1, nullptr)));
        float* const memory = memory_of(gpu, 0);
        EXPECT_TRUE(refused(all_reduce_into(memory, memory, comm), trestleInvalidArgument, {"device is 1"}));
        trestleComm_t split;
        ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, 0, &split, nullptr)));
        EXPECT_TRUE(refused(all_reduce_into(memory, memory, split), trestleInvalidArgument, {"device is 1"}));
        destroy({split, comm});
      },
      {{"TRESTLE_DEVICE", "1"}});
}

}  // namespace
}  // namespace cuda_memory_test
}  // namespace fake_gpu
