// A job of ranks of this process on devices: its communicators, streams and buffers.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {

// The buffers of every rank of a job, and its calls. Pinned memory that calls have taken is counted.
class Job {
 public:
  static constexpr size_t kFewNumbers = 30'000;

  // of_pool: where the program has its buffers from. count: numbers in each.
  Job(Gpu& gpu, const std::vector<int>& devices, bool of_pool = false, size_t count = kFewNumbers)
      : gpu_(gpu), devices_(devices), count_(count), comms_(communicators(devices)) {
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
    const size_t block = count_ / n;
    call([&](int r) {
      return trestleAllReduce(send(r), recv(r), count_, trestleFloat32, trestleSum, comm(r), stream(r));
    });
    expect([&](int, size_t i) { return sum(i); }, count_);
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
    call([&](int r) { return trestleBroadcast(send(r), recv(r), count_, trestleFloat32, 1, comm(r), stream(r)); });
    expect([&](int, size_t i) { return value(1, i); }, count_);
    call([&](int r) { return exchange(r); });
    expect([&](int r, size_t i) { return value((r + ranks() - 1) % ranks(), i); }, count_);
    call([&](int r) { return to_itself(r); });
    expect([&](int r, size_t i) { return value(r, i); }, count_);
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
    return reinterpret_cast<float*>(gpu_.device(device).allocate(count_ * sizeof(float)).value());
  }
  // To the next rank, from the one before.
  trestleResult_t exchange(int r) {
    const int n = ranks();
    const trestleResult_t sent = trestleSend(send(r), count_, trestleFloat32, (r + 1) % n, comm(r), stream(r));
    return sent != trestleSuccess ? sent
                                  : trestleRecv(recv(r), count_, trestleFloat32, (r + n - 1) % n, comm(r), stream(r));
  }
  trestleResult_t to_itself(int r) {
    const trestleResult_t sent = trestleSend(send(r), count_, trestleFloat32, r, comm(r), stream(r));
    return sent != trestleSuccess ? sent : trestleRecv(recv(r), count_, trestleFloat32, r, comm(r), stream(r));
  }
  template <class Call>
  void call(Call&& one) {
    for (int r = 0; r < ranks(); ++r) {
      for (size_t i = 0; i < count_; ++i) send(r)[i] = value(r, i);
      std::fill_n(recv(r), count_, -1.0F);
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
  const size_t count_;
  const std::vector<trestleComm_t> comms_;
  std::vector<std::pair<StreamHandle*, trestleStream_t>> streams_;
  std::vector<float*> send_;
  std::vector<float*> recv_;
  int pinned_before_ = 0;
};

}  // namespace fake_gpu
