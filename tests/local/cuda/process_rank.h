// A rank in a process of its own, with a device.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {

using ranks::Process;

inline constexpr size_t kCount = 300'000;

inline float value(int rank, size_t i) {
  return static_cast<float>(100 * rank) + static_cast<float>(i % 1000);
}

// One rank of a job of processes: its process, its device, and its buffers.
class ProcessRank {
 public:
  ProcessRank(Process& process, int device, size_t count = kCount) : process_(process), device_(device), count_(count) {
    send_ = memory();
    recv_ = memory();
    cuda_ = gpu_.make_stream(device);
    stream_ = wrapped(cuda_);
  }
  Gpu& gpu() { return gpu_; }
  trestleComm_t comm() const { return comm_; }
  trestleStream_t stream() const { return stream_; }
  float* send() const { return send_; }
  float* recv() const { return recv_; }

  void join(const trestleConfig_t& config) { join(config, device_); }
  void join(const trestleConfig_t& config, int device) { ASSERT_TRUE(succeeded(try_join(config, device))); }
  trestleResult_t try_join(const trestleConfig_t& config) { return try_join(config, device_); }
  trestleResult_t try_join(const trestleConfig_t& config, int device) {
    const trestleUniqueId& id = ranks::id_of(process_);
    trestleConfig_t with_device = config;
    with_device.device = device;
    return trestleCommInitRankConfig(&comm_, process_.ranks, id, process_.rank, &with_device);
  }
  // Every collective, several times in a row on the stream, and a message to the next rank.
  void run_all() {
    const int n = process_.ranks;
    const size_t block = count_ / static_cast<size_t>(n);
    const auto sum = [n](size_t i) {
      float all = 0;
      for (int r = 0; r < n; ++r) all += value(r, i);
      return all;
    };
    const auto at = [&](size_t i) { return static_cast<size_t>(process_.rank) * block + i; };
    call([&] { return trestleAllReduce(send_, recv_, count_, trestleFloat32, trestleSum, comm_, stream_); });
    expect(count_, sum);
    call([&] { return trestleReduceScatter(send_, recv_, block, trestleFloat32, trestleSum, comm_, stream_); });
    expect(block, [&](size_t i) { return sum(at(i)); });
    call([&] { return trestleAllGather(send_, recv_, block, trestleFloat32, comm_, stream_); });
    expect(block * static_cast<size_t>(n), [&](size_t i) { return value(static_cast<int>(i / block), i % block); });
    call([&] { return trestleAllToAll(send_, recv_, block, trestleFloat32, comm_, stream_); });
    expect(block * static_cast<size_t>(n), [&](size_t i) { return value(static_cast<int>(i / block), at(i % block)); });
    call([&] { return trestleBroadcast(send_, recv_, count_, trestleFloat32, n - 1, comm_, stream_); });
    expect(count_, [&](size_t i) { return value(n - 1, i); });
    call([&] {
      EXPECT_TRUE(succeeded(trestleGroupStart()));
      EXPECT_TRUE(succeeded(trestleSend(send_, count_, trestleFloat32, (process_.rank + 1) % n, comm_, stream_)));
      EXPECT_TRUE(succeeded(trestleRecv(recv_, count_, trestleFloat32, (process_.rank + n - 1) % n, comm_, stream_)));
      return trestleGroupEnd();
    });
    expect(count_, [&](size_t i) { return value((process_.rank + n - 1) % n, i); });
  }
  // Bytes of all messages, and of those that were read where they lay.
  std::pair<uint64_t, uint64_t> sent() const {
    trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
    EXPECT_TRUE(succeeded(trestleCommGetStats(comm_, &stats)));
    return {stats.dimension[0].bytesSent, stats.dimension[0].bytesMapped};
  }
  // Bytes of parts of messages.
  uint64_t sent_through_host() const {
    uint64_t bytes = 0;
    for (const trestleRailStats_t& row : rails_of(comm_))
      bytes += row.name == std::string("host memory") ? row.bytesSent : 0;
    return bytes;
  }
  void await_idle() { gpu_.await_idle(cuda_, device_); }
  void end() {
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm_)));
    EXPECT_TRUE(succeeded(trestleStreamDestroy(stream_)));
    await_idle();
  }

 private:
  float* memory() { return reinterpret_cast<float*>(gpu_.device(device_).allocate(count_ * sizeof(float)).value()); }
  template <class Call>
  void call(Call&& issue) {
    for (size_t i = 0; i < count_; ++i) send_[i] = value(process_.rank, i);
    for (int again = 0; again < 3; ++again) {
      std::fill_n(recv_, count_, -1.0F);
      for (int ahead = 0; ahead < 2; ++ahead) ASSERT_TRUE(succeeded(issue(), comm_));
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream_), comm_));
    }
  }
  template <class Expected>
  void expect(size_t count, Expected&& expected) {
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(recv_[i], expected(i)) << "element " << i;
  }

  Gpu gpu_;
  Process& process_;
  const int device_;
  const size_t count_;
  trestleComm_t comm_ = nullptr;
  StreamHandle* cuda_ = nullptr;
  trestleStream_t stream_ = nullptr;
  float* send_ = nullptr;
  float* recv_ = nullptr;
};

// A job of processes that all must end well, but those in `dead`.
inline std::vector<ranks::Outcome> run_processes(int count, const std::function<void(Process&)>& body,
                                                 const std::function<ranks::Env(int rank)>& env = {},
                                                 const std::vector<int>& dead = {}) {
  ranks::Job job;
  job.ranks = count;
  job.body = body;
  job.env = env;
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes, dead);
  return outcomes;
}

// Tests of several processes.
class Processes : public testing::Test {
 protected:
  void SetUp() override {
    if (!ranks::proofs()) GTEST_SKIP() << "ranks of several processes need libsodium";
  }
};

// The memory of one communicator of two ranks serves the next one, once all have left it.
inline void use_memory_again(const std::vector<int>& devices, size_t count, const ranks::Env& env = {},
                             void (*before)() = nullptr) {
  const auto body = [&](Process& process) {
    if (before != nullptr) before();
    trestle::FakeObjects first;
    for (int round = 0; round < 4; ++round) {
      ProcessRank rank(process, devices[static_cast<size_t>(process.rank)], count);
      rank.join(ranks::config_of({}));
      ranks::drop_id(process);
      rank.run_all();
      rank.end();
      ranks::meet(process.board, 2);
      if (round == 0) first = driver().objects();
      EXPECT_EQ(driver().objects().opened, 0);
      EXPECT_EQ(driver().objects().pinned, first.pinned);
      EXPECT_EQ(driver().objects().memory, first.memory + 2 * round) << "but for the buffers of this test";
    }
  };
  run_processes(2, body, [&](int) { return env; });
}

// Two threads on each of two processes, which have the id.
inline std::vector<ranks::Outcome> run_threads(const std::function<void(Gpu&, Process&, int thread)>& body,
                                               const std::function<void()>& before = {}, const ranks::Env& env = {}) {
  const auto process_body = [&](Process& process) {
    Gpu gpu;
    if (before) before();
    (void)ranks::id_of(process);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) threads.emplace_back([&, t] { body(gpu, process, t); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(driver().misuse(), "");
  };
  return run_processes(2, process_body, [&](int) { return env; });
}

// A rank thread of a process with several: all-reduces on a device of its own.
inline void sum_on(Gpu& gpu, int device, int rank, int ranks, const trestleUniqueId& id, size_t count = kCount) {
  trestleConfig_t config = ranks::config_of({});
  config.device = device;
  trestleComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(trestleCommInitRankConfig(&comm, ranks, id, rank, &config)));
  StreamHandle* const cuda = gpu.make_stream(device);
  const trestleStream_t stream = wrapped(cuda);
  auto* const data = reinterpret_cast<float*>(gpu.device(device).allocate(count * sizeof(float)).value());
  for (int again = 0; again < 3; ++again) {
    std::fill_n(data, count, static_cast<float>(1 << rank));
    ASSERT_TRUE(succeeded(all_reduce(data, count, comm, stream)));
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    EXPECT_EQ(std::count(data, data + count, static_cast<float>((1 << ranks) - 1)), static_cast<long>(count));
  }
  EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
  gpu.await_idle(cuda, device);
}

// Two ranks on these devices. The nth allocation of one of them finds no memory, for each n: both have a communicator
// with right results and the same kernels, or neither has one.
inline void agree_without_memory(const std::vector<int>& devices, size_t count, int allocations) {
  for (int nth = 0; nth < allocations; ++nth) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    const auto outcomes = run_processes(2, [&](Process& process) {
      ProcessRank rank(process, devices[static_cast<size_t>(process.rank)], count);
      if (process.rank == 1) driver().refuse_memory(nth);
      const trestleResult_t joined = rank.try_join(ranks::config_of({}));
      driver().refuse_memory(-1);
      process.result = "refused";
      if (joined != trestleSuccess) return;
      rank.run_all();
      ASSERT_TRUE(succeeded(all_reduce(rank.recv(), count, rank.comm(), rank.stream())));
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(rank.stream())));
      process.result = driver().launched().find("board_") != std::string::npos ? "with a board" : "without";
      rank.end();
    });
    EXPECT_EQ(outcomes[0].result, outcomes[1].result);
  }
}

}  // namespace fake_gpu
