// What calls on device memory take from the driver: all of it before they are queued, no more than calls that run at
// the same time need, and where there is none, all ranks hear of it.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace cuda_staging_test {
namespace {

constexpr size_t kCount = 50'000;
float factor = 3;  // of the operators

// Messages between the ranks need pinned memory.
std::vector<trestleComm_t> through_host_memory(const std::vector<int>& devices) {
  ::setenv("TRESTLE_PEER_ACCESS", "0", 1);
  return communicators(devices);
}

// Two ranks of this process, each with its device and some streams. Their calls need memory of the device, where their
// input is multiplied, and pinned memory for their messages.
class Pair {
 public:
  Pair(Gpu& gpu, int streams) : gpu_(gpu), comms_(through_host_memory({0, 1})), streams_(2), ops_(2) {
    for (int r = 0; r < 2; ++r) {
      EXPECT_TRUE(succeeded(
          trestleRedOpCreatePreMulSum(&ops_[r], &factor, trestleFloat32, trestleScalarHostImmediate, comms_[r])));
      for (int s = 0; s < streams; ++s) add_stream(r);
    }
  }
  trestleComm_t comm(int rank) const { return comms_[rank]; }
  trestleStream_t stream(int rank, int stream = 0) const { return streams_[rank][stream].second; }

  void add_stream(int rank) {
    StreamHandle* const cuda = gpu_.make_stream(rank);
    streams_[rank].emplace_back(cuda, wrapped(cuda));
  }
  void drop_stream(int rank) {
    const auto [cuda, stream] = streams_[rank].back();
    streams_[rank].pop_back();
    EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
    gpu_.await_idle(cuda, rank);
    EXPECT_TRUE(gpu_.device(rank).destroy_stream(cuda).ok());
  }

  // Rank r sends r + 1 everywhere.
  trestleResult_t call(int rank, int stream = 0, size_t count = kCount) {
    const float* const send = filled(rank, count);
    return call_on(rank, send, results_.back().first, stream, count);
  }
  // call() as a persistent request, which has not begun.
  trestleRequest_t prepared_call(int rank, int stream) {
    const float* const send = filled(rank, kCount);
    trestleRequest_t request = nullptr;
    EXPECT_TRUE(succeeded(trestleReduceScatterInit(send, results_.back().first, kCount, trestleFloat32, ops_[rank],
                                                   comms_[rank], this->stream(rank, stream), &request)));
    return request;
  }
  trestleResult_t call_on(int rank, const float* send, float* recv, int stream = 0, size_t count = kCount) const {
    return trestleReduceScatter(send, recv, count, trestleFloat32, ops_[rank], comms_[rank],
                                this->stream(rank, stream));
  }
  float* memory_of(int rank, size_t count) {
    memory_.emplace_back(rank, gpu_.device(rank).allocate(count * sizeof(float)).value());
    return reinterpret_cast<float*>(memory_.back().second);
  }
  void expect_results() {
    for (int r = 0; r < 2; ++r) {
      for (const auto& [cuda, stream] : streams_[r]) EXPECT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    }
    for (const auto& [result, count] : results_)
      EXPECT_EQ(std::count(result, result + count, 3 * factor), static_cast<std::ptrdiff_t>(count));
    free_all();
  }
  // Ends the ranks, which may have failed.
  void end() {
    for (trestleComm_t comm : comms_) trestleCommAbort(comm);
    free_all();
    for (int r = 0; r < 2; ++r) {
      while (!streams_[r].empty()) drop_stream(r);
    }
  }

 private:
  // What a call sends, and room for its result.
  float* filled(int rank, size_t count) {
    float* const send = memory_of(rank, 2 * count);
    std::fill_n(send, 2 * count, static_cast<float>(rank + 1));
    results_.push_back({memory_of(rank, count), count});
    return send;
  }
  // Nothing is left of it in what the driver counts.
  void free_all() {
    for (const auto& [rank, memory] : memory_) EXPECT_TRUE(gpu_.device(rank).free(memory).ok());
    memory_.clear();
    results_.clear();
  }

  Gpu& gpu_;
  const std::vector<trestleComm_t> comms_;
  std::vector<std::vector<std::pair<StreamHandle*, trestleStream_t>>> streams_;  // by rank
  std::vector<trestleRedOp_t> ops_;
  std::vector<std::pair<int, std::byte*>> memory_;
  std::vector<std::pair<float*, size_t>> results_;
};

// From here on the driver may wait for the streams, which wait for the calls.
void run_without_slow_calls(Pair& pair) {
  driver().forbid_slow_calls(true);
  driver().hold_streams(false);
  for (int r = 0; r < 2; ++r) ASSERT_TRUE(succeeded(trestleStreamSynchronize(pair.stream(r))));
  for (int r = 0; r < 2; ++r) ASSERT_TRUE(succeeded(trestleCommSynchronize(pair.comm(r))));
  driver().forbid_slow_calls(false);
  pair.expect_results();
}

TEST(CudaStaging, OfCallsOnTwoStreamsIsThereBeforeTheyRun) {
  both_ways([](Gpu& gpu) {
    Pair pair(gpu, 2);
    driver().hold_streams(true);
    for (const int r : {0, 1}) {
      for (const int s : {0, 1}) ASSERT_TRUE(succeeded(pair.call(r, s)));
    }
    run_without_slow_calls(pair);
    pair.end();
  });
}

TEST(CudaStaging, OfCallsOfAGroupIsThereBeforeTheyRun) {
  both_ways([](Gpu& gpu) {
    Pair pair(gpu, 1);
    driver().hold_streams(true);
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (const int r : {0, 1}) {
      for (int call = 0; call < 3; ++call) ASSERT_TRUE(succeeded(pair.call(r)));
    }
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    run_without_slow_calls(pair);
    pair.end();
  });
}

// ---- how much

struct Held {
  int memory = 0;
  int pinned = 0;
  uint64_t bytes = 0;
  bool operator==(const Held&) const = default;
};

Held held_by(const Pair& pair) {
  Held held{driver().objects().memory, driver().objects().pinned, 0};
  for (int r = 0; r < 2; ++r) {
    uint64_t bytes = 0;
    EXPECT_TRUE(succeeded(trestleCommMemStats(pair.comm(r), trestleMemStaging, &bytes)));
    held.bytes += bytes;
  }
  return held;
}

// All of a rank's calls before any of the other's.
void run_ahead(Pair& pair, int calls, size_t other_count = kCount) {
  for (const int r : {0, 1}) {
    for (int call = 0; call < calls; ++call)
      ASSERT_TRUE(succeeded(pair.call(r, 0, call % 2 == 0 ? kCount : other_count)));
  }
  pair.expect_results();
}

TEST(CudaStaging, DoesNotGrowWithTheNumberOfCalls) {
  ranks::isolated([] {
    Gpu gpu;
    Pair pair(gpu, 1);
    run_ahead(pair, 1);
    const Held first = held_by(pair);
    EXPECT_GT(first.memory, 0);
    EXPECT_GT(first.pinned, 0);
    EXPECT_GT(first.bytes, 0u);
    for (const int calls : {10, 100}) {
      run_ahead(pair, calls);
      EXPECT_EQ(held_by(pair), first) << calls << " calls ahead";
    }
    run_ahead(pair, 2, kCount / 7);
    const Held second = held_by(pair);
    run_ahead(pair, 100, kCount / 7);
    EXPECT_EQ(held_by(pair), second) << "of two lengths, by turns";
    pair.end();
  });
}

TEST(CudaStaging, DoesNotGrowWithTheNumberOfStreamsThatThereWere) {
  both_ways([](Gpu& gpu) {
    Pair pair(gpu, 0);
    Held first;
    for (int step = 0; step < 30; ++step) {
      for (const int r : {0, 1}) pair.add_stream(r);
      run_ahead(pair, 1);
      for (const int r : {0, 1}) pair.drop_stream(r);
      if (step == 0) first = held_by(pair);
    }
    EXPECT_EQ(held_by(pair), first);
    pair.end();
  });
}

TEST(CudaStaging, OfPersistentCallsIsThereBeforeTheyStart) {
  both_ways([](Gpu& gpu) {
    Pair pair(gpu, 2);
    std::vector<trestleRequest_t> requests;
    for (const int r : {0, 1}) {
      for (const int s : {0, 1}) requests.push_back(pair.prepared_call(r, s));
    }
    const Held held = held_by(pair);
    for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestStart(request)));
    for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestWait(request)));
    EXPECT_EQ(held_by(pair), held);
    for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestFree(request)));
    pair.expect_results();
    pair.end();
  });
}

// ---- where there is none

// Runs both ranks, of whose requests for memory the nth is refused. False: there were not so many.
bool refused_at(int nth, const std::function<void(int rank)>& run) {
  driver().refuse_memory(nth);
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  const bool came = driver().has_refused_memory();
  driver().refuse_memory(-1);
  return came;
}

void expect_ended(trestleResult_t ended, trestleComm_t comm, bool came) {
  EXPECT_EQ(ended, came ? trestleSystemError : trestleSuccess) << trestleGetLastError(comm);
  if (!came) return;
  const std::string sentence = trestleGetLastError(comm);
  EXPECT_TRUE(ranks::contains(sentence, "is out of memory")) << sentence;
}

// Refuses each of the requests in turn.
void refuse_each(const std::function<bool(int nth)>& came) {
  int nth = 0;
  while (came(nth) && !testing::Test::HasFailure()) ASSERT_LT(++nth, 100);
  EXPECT_GE(nth, 4) << "of the device and pinned, on each rank";
}

TEST(CudaStaging, ThatTheDriverDoesNotHaveFailsTheCallOnAllRanks) {
  both_ways([](Gpu& gpu) {
    refuse_each([&](int nth) {
      Pair pair(gpu, 1);
      trestleResult_t ended[2] = {};
      float* const send[] = {pair.memory_of(0, 2 * kCount), pair.memory_of(1, 2 * kCount)};
      float* const recv[] = {pair.memory_of(0, kCount), pair.memory_of(1, kCount)};
      const bool came = refused_at(nth, [&](int r) {
        const trestleResult_t issued = pair.call_on(r, send[r], recv[r]);
        ended[r] = issued != trestleSuccess ? issued : trestleStreamSynchronize(pair.stream(r));
      });
      for (int r = 0; r < 2; ++r) expect_ended(ended[r], pair.comm(r), came);
      pair.end();
      return came;
    });
  });
}

// A rank that is refused makes no call of its group. The other rank may have made all of its own.
TEST(CudaStaging, ThatTheDriverDoesNotHaveFailsAllCommunicatorsOfTheGroup) {
  both_ways([](Gpu& gpu) {
    refuse_each([&](int nth) {
      Pair pair(gpu, 1);
      const auto others = communicators({-1, -1});
      float host[2] = {1, 2};
      trestleResult_t ended[2] = {};
      trestleResult_t other_ended[2] = {};
      float* const send[] = {pair.memory_of(0, 2 * kCount), pair.memory_of(1, 2 * kCount)};
      float* const recv[] = {pair.memory_of(0, kCount), pair.memory_of(1, kCount)};
      const bool came = refused_at(nth, [&](int r) {
        EXPECT_TRUE(succeeded(trestleGroupStart()));
        // Where the other rank was refused just now, these may be refused already, and the group with them.
        all_reduce(&host[r], 1, others[r], nullptr);
        pair.call_on(r, send[r], recv[r]);
        const trestleResult_t issued = trestleGroupEnd();
        ended[r] = issued != trestleSuccess ? issued : trestleStreamSynchronize(pair.stream(r));
        // If this rank's group was refused too, nothing waits for the other communicator's failure but this.
        do other_ended[r] = trestleCommSynchronize(others[r]);
        while (ended[r] != trestleSuccess && other_ended[r] == trestleSuccess);
      });
      for (int r = 0; r < 2; ++r) {
        expect_ended(ended[r], pair.comm(r), came);
        expect_ended(other_ended[r], others[r], came);
      }
      for (trestleComm_t comm : others) trestleCommAbort(comm);
      pair.end();
      return came;
    });
  });
}

}  // namespace
}  // namespace cuda_staging_test
}  // namespace fake_gpu
