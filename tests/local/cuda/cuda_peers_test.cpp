// Ranks of one process on devices that reach each other: their messages go from device to device, without bounce
// buffers. Where devices do not reach each other, or not these buffers, they go through pinned memory.
#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace {

constexpr size_t kCount = 30'000;

// The buffers of every rank of a job, and its calls. Pinned memory that calls have taken is counted.
class Job {
 public:
  // of_pool: where the program has its buffers from.
  Job(Gpu& gpu, const std::vector<int>& devices, bool of_pool = false)
      : gpu_(gpu), devices_(devices), comms_(communicators(devices)) {
    driver().allocate_from_pools(of_pool);
    for (const int device : devices) {
      StreamHandle* const cuda = gpu.make_stream(device);
      streams_.emplace_back(cuda, wrapped(cuda));
      send_.push_back(memory(device));
      recv_.push_back(memory(device));
    }
    driver().allocate_from_pools(false);
    pinned_before_ = driver().objects().pinned;
  }
  int ranks() const { return static_cast<int>(devices_.size()); }
  trestleComm_t comm(int rank) const { return comms_[static_cast<size_t>(rank)]; }
  float* send(int rank) const { return send_[static_cast<size_t>(rank)]; }
  float* recv(int rank) const { return recv_[static_cast<size_t>(rank)]; }
  trestleStream_t stream(int rank) const { return streams_[static_cast<size_t>(rank)].second; }
  int pinned_by_calls() const { return driver().objects().pinned - pinned_before_; }

  // Every collective once, with the data that it must give. Rank r has 100 r + i in element i.
  void run_all() {
    const auto n = static_cast<size_t>(ranks());
    const size_t block = kCount / n;
    call([&](int r) {
      return trestleAllReduce(send(r), recv(r), kCount, trestleFloat32, trestleSum, comm(r), stream(r));
    });
    expect([&](int, size_t i) { return sum(i); }, kCount);
    call([&](int r) {
      return trestleReduceScatter(send(r), recv(r), block, trestleFloat32, trestleSum, comm(r), stream(r));
    });
    expect([&](int r, size_t i) { return sum(block * static_cast<size_t>(r) + i); }, block);
    call([&](int r) { return trestleAllGather(send(r), recv(r), block, trestleFloat32, comm(r), stream(r)); });
    expect([&](int, size_t i) { return value(static_cast<int>(i / block), i % block); }, block * n);
    call([&](int r) { return trestleAllToAll(send(r), recv(r), block, trestleFloat32, comm(r), stream(r)); });
    expect(
        [&](int r, size_t i) { return value(static_cast<int>(i / block), block * static_cast<size_t>(r) + i % block); },
        block * n);
    call([&](int r) { return trestleBroadcast(send(r), recv(r), kCount, trestleFloat32, 1, comm(r), stream(r)); });
    expect([&](int, size_t i) { return value(1, i); }, kCount);
    call([&](int r) { return exchange(r); });
    expect([&](int r, size_t i) { return value((r + ranks() - 1) % ranks(), i); }, kCount);
    call([&](int r) { return to_itself(r); });
    expect([&](int r, size_t i) { return value(r, i); }, kCount);
  }

  void end() {
    for (size_t r = 0; r < devices_.size(); ++r) {
      EXPECT_TRUE(succeeded(trestleCommDestroy(comms_[r])));
      EXPECT_TRUE(succeeded(trestleStreamDestroy(streams_[r].second)));
      gpu_.await_idle(streams_[r].first, devices_[r]);
      EXPECT_TRUE(gpu_.device(devices_[r]).destroy_stream(streams_[r].first).ok());
      for (float* const memory : {send_[r], recv_[r]})
        EXPECT_TRUE(gpu_.device(devices_[r]).free(reinterpret_cast<std::byte*>(memory)).ok());
    }
  }

 private:
  static float value(int rank, size_t i) { return static_cast<float>(100 * rank) + static_cast<float>(i % 1000); }
  float sum(size_t i) const {
    float all = 0;
    for (int r = 0; r < ranks(); ++r) all += value(r, i);
    return all;
  }
  float* memory(int device) {
    return reinterpret_cast<float*>(gpu_.device(device).allocate(kCount * sizeof(float)).value());
  }
  // To the next rank, from the one before.
  trestleResult_t exchange(int r) {
    const int n = ranks();
    const trestleResult_t sent = trestleSend(send(r), kCount, trestleFloat32, (r + 1) % n, comm(r), stream(r));
    return sent != trestleSuccess ? sent
                                  : trestleRecv(recv(r), kCount, trestleFloat32, (r + n - 1) % n, comm(r), stream(r));
  }
  trestleResult_t to_itself(int r) {
    const trestleResult_t sent = trestleSend(send(r), kCount, trestleFloat32, r, comm(r), stream(r));
    return sent != trestleSuccess ? sent : trestleRecv(recv(r), kCount, trestleFloat32, r, comm(r), stream(r));
  }
  template <class Call>
  void call(Call&& one) {
    for (int r = 0; r < ranks(); ++r) {
      for (size_t i = 0; i < kCount; ++i) send(r)[i] = value(r, i);
      std::fill_n(recv(r), kCount, -1.0F);
    }
    EXPECT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < ranks(); ++r) EXPECT_TRUE(succeeded(one(r)));
    EXPECT_TRUE(succeeded(trestleGroupEnd()));
    for (int r = 0; r < ranks(); ++r) EXPECT_TRUE(succeeded(trestleStreamSynchronize(stream(r)), comm(r)));
  }
  template <class Expected>
  void expect(Expected&& expected, size_t count) {
    for (int r = 0; r < ranks(); ++r) {
      size_t wrong = 0;
      for (size_t i = 0; i < count; ++i) wrong += recv(r)[i] != expected(r, i) ? 1 : 0;
      EXPECT_EQ(wrong, 0u) << "rank " << r;
    }
  }

  Gpu& gpu_;
  const std::vector<int> devices_;
  const std::vector<trestleComm_t> comms_;
  std::vector<std::pair<StreamHandle*, trestleStream_t>> streams_;
  std::vector<float*> send_;
  std::vector<float*> recv_;
  int pinned_before_ = 0;
};

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

}  // namespace
}  // namespace fake_gpu
