// Ranks of one process on devices that reach each other: their messages go from device to device, without bounce
// buffers. Where devices do not reach each other, or not these buffers, they go through pinned memory.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "device/kernels.h"
#include "local/cuda/peers_job.h"

namespace fake_gpu {
namespace cuda_peers_test {
namespace {

// Whether the calls of a job on these devices go in place.
bool goes_in_place(Gpu& gpu, const std::vector<int>& devices) {
  Job job(gpu, devices);
  job.run_all();
  const bool in_place = job.pinned_by_calls() == 0;
  job.end();
  return in_place;
}

TEST(CudaPeers, ReadEachOthersMemoryWhereItLies) {
  both_ways([](Gpu& gpu) {
    for (const std::vector<int>& devices : {std::vector<int>{0, 1}, {0, 0}, {0, 1, 1}, {0, 0, 1, 1}, {1, 0, 1, 0, 1}})
      EXPECT_TRUE(goes_in_place(gpu, devices)) << devices.size() << " ranks";
  });
}

TEST(CudaPeers, ThatDoNotReachEachOtherUsePinnedMemory) {
  ranks::isolated([] {
    driver().set_peer_access(false);
    Gpu gpu;
    EXPECT_FALSE(goes_in_place(gpu, {0, 1}));
    EXPECT_FALSE(goes_in_place(gpu, {0, 0, 1, 1}));
    EXPECT_TRUE(goes_in_place(gpu, {0, 0})) << "a device reaches itself";
  });
}

// A machine may promise access and deliver other bytes.
TEST(CudaPeers, ThatDeliverOtherBytesAreLeftOut) {
  ranks::isolated([] {
    driver().break_peer_access(true, false);
    Gpu gpu;
    EXPECT_FALSE(goes_in_place(gpu, {0, 1}));
    driver().break_peer_access(false, false);
    EXPECT_FALSE(goes_in_place(gpu, {1, 0})) << "what was found once holds for the process";
  });
}

// One end of a message has it on a device, the other one on the host. Nobody touches memory that is not for it.
TEST(CudaPeers, RefuseMessagesWhoseEndsAreInDifferentPlaces) {
  for (const bool to_itself : {false, true}) {
    for (const bool from_device : {false, true}) {
      SCOPED_TRACE(testing::Message() << "to itself " << to_itself << ", from the device " << from_device);
      ranks::isolated([=] {
        Gpu gpu;
        Job job(gpu, {0, 1});
        std::vector<float> host(100);
        const int to = to_itself ? 0 : 1;
        const float* const sent = from_device ? job.send(0) : host.data();
        float* const received = from_device ? host.data() : job.recv(to);
        ASSERT_TRUE(succeeded(trestleGroupStart()));
        ASSERT_TRUE(succeeded(trestleSend(sent, 100, trestleFloat32, to, job.comm(0), nullptr)));
        ASSERT_TRUE(succeeded(trestleRecv(received, 100, trestleFloat32, 0, job.comm(to), nullptr)));
        ASSERT_TRUE(succeeded(trestleGroupEnd()));
        EXPECT_TRUE(ranks::refused(trestleCommSynchronize(job.comm(to)), trestleInvalidUsage,
                                   {"in device memory", "in host memory", "between them"}, job.comm(to)));
        for (int r = 0; r < 2; ++r) EXPECT_EQ(trestleCommAbort(job.comm(r)), trestleSuccess);
      });
    }
  }
}

// Memory of pools is not read by other devices, but by the same one.
TEST(CudaPeers, CopyMemoryThatIsNotOpenToThem) {
  ranks::isolated([] {
    Gpu gpu;
    Job apart(gpu, {0, 1, 1}, true);
    Job together(gpu, {1, 1}, true);
    const int before = driver().objects().pinned;
    together.run_all();
    EXPECT_EQ(driver().objects().pinned, before);
    apart.run_all();
    EXPECT_NE(driver().objects().pinned, before);
    together.end();
    apart.end();
  });
}

// A driver may let the program's calls wait for all work, and so for streams that calls hold.
TEST(CudaPeers, TheProgramAllocatesFreesAndLoadsCodeBesideThem) {
  both_ways([](Gpu& gpu) {
    for (const std::vector<int>& devices : {std::vector<int>{0, 1}, {0, 0, 1}}) {
      Job job(gpu, devices);
      job.run_all();  // the library's own memory is there then
      driver().let_slow_calls_wait(true);
      std::atomic<bool> ends{false};
      int loops = 0;
      std::thread program([&] {
        for (; !ends || loops < 2; ++loops) {
          EXPECT_TRUE(gpu.device().free(gpu.device().allocate(1 << 16).value()).ok());
          EXPECT_TRUE(trestle::DeviceKernels::create(gpu.device()).ok());
        }
      });
      for (int again = 0; again < 3; ++again) job.run_all();
      ends = true;
      program.join();
      driver().let_slow_calls_wait(false);
      job.end();
    }
  });
}

TEST(CudaPeers, MayBeForbidden) {
  for (const auto& [name, value] : {std::pair{"TRESTLE_PEER_ACCESS", "0"}, {"NCCL_P2P_DISABLE", "1"}}) {
    SCOPED_TRACE(name);
    ranks::isolated([name = name, value = value] {
      ::setenv(name, value, 1);
      Gpu gpu;
      EXPECT_FALSE(goes_in_place(gpu, {0, 0}));
    });
  }
}

// A path has two ends. The library must not touch memory of a device for the rank that does not want it.
TEST(CudaPeers, ThatOneRankForbidsAreNone) {
  for (const int other : {0, 1}) {
    ranks::isolated([other] {
      Gpu gpu;
      constexpr size_t kCount = 30'000;
      trestleUniqueId id;
      ASSERT_TRUE(succeeded(trestleGetUniqueId(&id)));
      trestleComm_t comms[2];
      float* data[2];
      trestleStream_t streams[2];
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      for (int r = 0; r < 2; ++r) {
        trestleConfig_t config = ranks::config_of({});
        config.device = r == 0 ? 0 : other;
        config.peerAccess = r;
        ASSERT_TRUE(succeeded(trestleCommInitRankConfig(&comms[r], 2, id, r, &config)));
        data[r] = reinterpret_cast<float*>(gpu.device(config.device).allocate(kCount * sizeof(float)).value());
        streams[r] = wrapped(gpu.make_stream(config.device));
      }
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
      for (int again = 0; again < 2; ++again) {
        for (int r = 0; r < 2; ++r) std::fill_n(data[r], kCount, static_cast<float>(1 + r));
        ASSERT_TRUE(succeeded(trestleGroupStart()));
        for (int r = 0; r < 2; ++r) ASSERT_TRUE(succeeded(all_reduce(data[r], kCount, comms[r], streams[r])));
        ASSERT_TRUE(succeeded(trestleGroupEnd()));
        for (const trestleStream_t stream : streams) ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
        for (const float* const one : data) EXPECT_EQ(std::count(one, one + kCount, 3.0F), static_cast<long>(kCount));
      }
      for (const trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      for (const trestleStream_t stream : streams) EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
      EXPECT_EQ(driver().misuse(), "");
    });
  }
}

}  // namespace
}  // namespace cuda_peers_test
}  // namespace fake_gpu
