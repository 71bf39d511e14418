// The C functions without memory: they return a code and never throw an exception into the caller's frames, and a
// communicator with a call that other ranks take part in fails on all of them. The library's own threads end the
// process. And how often issuing a call takes memory.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/allocations.h"
#include "support/ranks.h"

namespace api {
namespace api_memory_test {
namespace {

template <class F>
void without_memory(F&& call) {
  allocations::short_of_memory(0, true, call);
}

struct World {
  trestleComm_t comm = nullptr;
  trestleStream_t stream = nullptr;
  float data[4] = {};
};

struct BadCall {
  const char* name;
  trestleResult_t (*make)(World&);
};

// Each of these is refused with a sentence, which needs memory.
const BadCall kBadCalls[] = {
    {"version", [](World&) { return trestleGetVersion(nullptr); }},
    {"unique id", [](World&) { return trestleGetUniqueId(nullptr); }},
    {"devices", [](World& w) { return trestleCommInitAll(&w.comm, 1, reinterpret_cast<const int*>(w.data)); }},
    {"join", [](World& w) { return trestleCommInitRank(&w.comm, 2, trestleUniqueId{}, 2); }},
    {"send", [](World& w) { return trestleSend(w.data, 4, trestleFloat32, 7, w.comm, nullptr); }},
    {"receive", [](World& w) { return trestleRecv(w.data, 4, trestleFloat32, -1, w.comm, nullptr); }},
    {"type",
     [](World& w) { return trestleAllReduce(w.data, w.data, 4, trestleNumTypes, trestleSum, w.comm, nullptr); }},
    {"finalize", [](World&) { return trestleCommFinalize(nullptr); }},
    {"destroy", [](World&) { return trestleCommDestroy(nullptr); }},
    {"count", [](World& w) { return trestleCommCount(w.comm, nullptr); }},
    {"stream", [](World&) { return trestleStreamCreate(nullptr); }},
    {"event", [](World&) { return trestleEventRecord(nullptr, nullptr); }},
    {"wait", [](World& w) { return trestleStreamWaitEvent(w.stream, nullptr); }},
    {"request", [](World&) { return trestleRequestWait(nullptr); }},
    {"memory", [](World&) { return trestleMemAlloc(nullptr, 8); }},
    {"end", [](World&) { return trestleGroupEnd(); }},
};

TEST(ApiMemory, SentencesThatFindNoMemoryAreCodes) {
  ranks::isolated([] {
    World world;
    ASSERT_EQ(trestleCommInitAll(&world.comm, 1, nullptr), trestleSuccess);
    ASSERT_EQ(trestleStreamCreate(&world.stream), trestleSuccess);
    for (const BadCall& call : kBadCalls) {
      trestleResult_t result = trestleSuccess;
      const char* sentence = nullptr;
      without_memory([&] {
        result = call.make(world);
        sentence = trestleGetLastError(world.comm);
      });
      EXPECT_EQ(result, trestleSystemError) << call.name;
      EXPECT_STREQ(sentence, "out of memory") << call.name;
      EXPECT_NE(call.make(world), trestleSystemError) << call.name;
      EXPECT_STRNE(trestleGetLastError(nullptr), "out of memory") << call.name;
    }
    EXPECT_EQ(trestleStreamDestroy(world.stream), trestleSuccess);
    EXPECT_EQ(trestleCommDestroy(world.comm), trestleSuccess);
  });
}

// A group is refused even if it had no memory to store why a call failed.
TEST(ApiMemory, AGroupIsRefusedForACallThatFoundNoMemory) {
  ranks::isolated([] {
    World world;
    ASSERT_EQ(trestleCommInitAll(&world.comm, 1, nullptr), trestleSuccess);
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    trestleResult_t result = trestleSuccess;
    without_memory([&] { result = trestleSend(world.data, 4, trestleFloat32, 7, world.comm, nullptr); });
    EXPECT_EQ(result, trestleSystemError);
    EXPECT_EQ(trestleGroupEnd(), trestleSystemError);
    EXPECT_EQ(trestleCommDestroy(world.comm), trestleSuccess);
  });
}

// The sentence of a failed communicator is copied for the caller. Without memory the caller gets another sentence.
TEST(ApiMemory, TheLastErrorOfACommunicatorNeedsNoMemory) {
  ranks::isolated([] {
    trestleComm_t comms[2] = {};
    ASSERT_EQ(trestleCommInitAll(comms, 2, nullptr), trestleSuccess);
    ASSERT_EQ(trestleCommAbort(comms[1]), trestleSuccess);
    trestleResult_t state = trestleSuccess;
    ranks::wait_until([&] { return trestleCommGetAsyncError(comms[0], &state) != trestleSuccess || state != 0; });
    const char* sentence = nullptr;
    without_memory([&] { sentence = trestleGetLastError(comms[0]); });
    EXPECT_STREQ(sentence, "out of memory");
    EXPECT_NE(std::string(trestleGetLastError(comms[0])).find("abort"), std::string::npos);
    EXPECT_EQ(trestleCommAbort(comms[0]), trestleSuccess);
  });
}

bool has_failed(trestleComm_t comm) {
  trestleResult_t state = trestleSuccess;
  return trestleCommGetAsyncError(comm, &state) != trestleSuccess || state != trestleSuccess;
}

// Makes a call on rank 0 of two, with memory for k allocations, for each k until it needs no more. Where it is refused,
// its communicator has failed for want of memory, the other rank is told so, and both can be destroyed.
void at_every_allocation(bool stays, const std::function<trestleResult_t(trestleComm_t)>& call) {
  int failures = 0;
  long k = 0;
  for (bool refused = true; refused && !testing::Test::HasFailure(); k += 1 + k / 8) {
    SCOPED_TRACE(testing::Message() << (stays ? "from allocation " : "allocation ") << k);
    trestleComm_t comms[2] = {};
    ASSERT_EQ(trestleCommInitAll(comms, 2, nullptr), trestleSuccess);
    trestleResult_t result = trestleSuccess;
    refused = allocations::short_of_memory(k, stays, [&] { result = call(comms[0]); });
    const bool failed = result != trestleSuccess;  // algorithms of the standard library may do without memory
    EXPECT_TRUE(!failed || (refused && result == trestleSystemError)) << trestleGetLastError(comms[0]);
    failures += failed ? 1 : 0;
    for (int rank = 0; rank < 2 && failed; ++rank) {
      ranks::wait_until([&] { return has_failed(comms[rank]); });
      const std::string sentence = trestleGetLastError(comms[rank]);
      EXPECT_TRUE(ranks::contains(sentence, "rank 0") && ranks::contains(sentence, "is out of memory")) << sentence;
    }
    for (const trestleComm_t comm : comms) EXPECT_EQ(trestleCommAbort(comm), trestleSuccess);
  }
  EXPECT_GT(failures, 1) << "it has needed no memory at all";
}

TEST(ApiMemory, ACallThatFindsNoMemoryFailsItsCommunicatorOnAllRanks) {
  static std::vector<float> data(1 << 20);
  float* const at = data.data();
  const auto all_reduce = [=](trestleComm_t comm) {
    return trestleAllReduce(at, at, data.size(), trestleFloat32, trestleSum, comm, nullptr);
  };
  const auto small = [=](trestleComm_t comm) {
    return trestleAllReduce(at, at, 4, trestleFloat32, trestleSum, comm, nullptr);
  };
  const auto group = [=](trestleComm_t comm) {
    trestleResult_t first = trestleGroupStart();
    for (const trestleResult_t result : {trestleSend(at, 4, trestleFloat32, 1, comm, nullptr),
                                         trestleRecv(at, 4, trestleFloat32, 1, comm, nullptr), trestleGroupEnd()}) {
      if (first == trestleSuccess) first = result;
    }
    return first;
  };
  const auto half = [=](trestleComm_t comm) {
    trestleRequest_t request = nullptr;
    return trestleAllReduceStart(at, at, data.size(), trestleFloat32, trestleSum, comm, nullptr, &request);
  };
  ranks::isolated(
      [&] {
        for (const bool stays : {false, true}) {
          at_every_allocation(stays, all_reduce);
          at_every_allocation(stays, small);
          at_every_allocation(stays, group);
          at_every_allocation(stays, half);
        }
      },
      {}, 300);
}

// The other rank has finalized, and waits for this one.
TEST(ApiMemory, AGroupThatFindsNoMemoryFailsWhatItFinalizes) {
  ranks::isolated(
      [] {
        trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
        config.blocking = 0;
        long k = 0;
        for (bool refused = true; refused && !testing::Test::HasFailure(); ++k) {
          SCOPED_TRACE(testing::Message() << "allocation " << k);
          trestleComm_t comms[2] = {};
          ASSERT_EQ(trestleCommInitAllConfig(comms, 2, &config), trestleSuccess);
          ASSERT_EQ(trestleCommFinalize(comms[1]), trestleInProgress);
          ASSERT_EQ(trestleGroupStart(), trestleSuccess);
          ASSERT_EQ(trestleCommFinalize(comms[0]), trestleSuccess);
          trestleResult_t result = trestleSuccess, state = trestleInProgress;
          refused = allocations::short_of_memory(k, false, [&] { result = trestleGroupEnd(); });
          EXPECT_EQ(result, refused ? trestleSystemError : trestleInProgress);
          for (trestleComm_t comm : comms) {
            ranks::wait_until(
                [&] { return trestleCommGetAsyncError(comm, &state) != 0 || state != trestleInProgress; });
            EXPECT_EQ(state, refused ? trestleSystemError : trestleSuccess);
          }
          for (const trestleComm_t comm : comms) EXPECT_EQ(trestleCommAbort(comm), trestleSuccess);
        }
        EXPECT_GT(k, 1) << "it has needed no memory at all";
      },
      {}, 300);
}

// A round that the waiting thread of the program drives, too.
TEST(ApiMemory, AWaitThatFindsNoMemoryFailsItsCommunicatorOnAllRanks) {
  ranks::isolated(
      [] {
        std::vector<float> data(1 << 20);
        long k = 0;
        for (bool refused = true; refused && !testing::Test::HasFailure(); ++k) {
          SCOPED_TRACE(testing::Message() << "allocation " << k);
          trestleComm_t comms[2] = {};
          ASSERT_EQ(trestleCommInitAll(comms, 2, nullptr), trestleSuccess);
          ASSERT_EQ(
              trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, comms[0], nullptr),
              trestleSuccess);
          trestleResult_t state = trestleSuccess, result = trestleSuccess;
          refused =
              allocations::short_of_memory(k, false, [&] { result = trestleCommGetAsyncError(comms[0], &state); });
          EXPECT_EQ(result, trestleSuccess);
          EXPECT_EQ(state, refused ? trestleSystemError : trestleSuccess);
          for (int rank = 0; rank < 2 && refused; ++rank) ranks::wait_until([&] { return has_failed(comms[rank]); });
          for (const trestleComm_t comm : comms) EXPECT_EQ(trestleCommAbort(comm), trestleSuccess);
        }
        EXPECT_GT(k, 1) << "it has needed no memory at all";
      },
      {{"TRESTLE_PROGRESS_THREAD", "0"}});
}

using Wait = trestleResult_t(trestleComm_t, trestleStream_t);

// A wait has ended the calls that it was for, whatever it returns: nothing uses their buffers, nor their stream.
// Returns whether an allocation was refused.
bool expect_waited(const char* name, long k, Wait* wait) {
  SCOPED_TRACE(testing::Message() << name << ", allocation " << k);
  static std::vector<float> data[2] = {std::vector<float>(1 << 20), std::vector<float>(1 << 20)};
  trestleComm_t comms[2] = {};
  trestleStream_t stream = nullptr;
  trestleEvent_t event = nullptr;
  EXPECT_EQ(trestleCommInitAll(comms, 2, nullptr), trestleSuccess);
  EXPECT_EQ(trestleStreamCreate(&stream), trestleSuccess);
  EXPECT_EQ(trestleEventCreate(&event), trestleSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    float* const values = data[rank].data();
    EXPECT_EQ(trestleAllReduce(values, values, data[rank].size(), trestleFloat32, trestleSum, comms[rank],
                               rank == 0 ? stream : nullptr),
              trestleSuccess);
  }
  EXPECT_EQ(trestleEventRecord(event, stream), trestleSuccess);
  trestleResult_t result = trestleSuccess;
  const bool refused = allocations::short_of_memory(k, false, [&] { result = wait(comms[0], stream); });
  EXPECT_TRUE(result == trestleSuccess || (refused && result == trestleSystemError)) << trestleGetLastError(comms[0]);
  EXPECT_NE(trestleEventQuery(event), trestleInProgress);
  EXPECT_EQ(trestleEventDestroy(event), trestleSuccess);
  for (const trestleComm_t comm : comms) EXPECT_EQ(trestleCommAbort(comm), trestleSuccess);
  return refused;
}

TEST(ApiMemory, AWaitThatFindsNoMemoryHasWaited) {
  const auto destroy = [](trestleComm_t, trestleStream_t stream) { return trestleStreamDestroy(stream); };
  const auto of_stream = [](trestleComm_t, trestleStream_t stream) { return trestleStreamSynchronize(stream); };
  const auto of_comm = [](trestleComm_t comm, trestleStream_t) { return trestleCommSynchronize(comm); };
  ranks::isolated(
      [&] {
        for (const auto& [name, wait] : {std::pair<const char*, Wait*>("StreamDestroy", destroy),
                                         {"StreamSynchronize", of_stream},
                                         {"CommSynchronize", of_comm}}) {
          long k = 0;
          for (bool refused = true; refused && !testing::Test::HasFailure(); k += 1 + k / 8)
            refused = expect_waited(name, k, wait);
          EXPECT_GT(k, 1) << "it has needed no memory at all";
        }
      },
      {{"TRESTLE_PROGRESS_THREAD", "0"}}, 300);
}

// Each new communicator wakes the watch thread, which then looks at it, and that takes memory.
TEST(ApiMemoryDeathTest, AThreadOfTheLibraryEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        trestleComm_t comm = nullptr;
        trestleCommInitAll(&comm, 1, nullptr);
        allocations::refuse_other_threads();
        for (int i = 0; i < 10'000; ++i) trestleCommInitAll(&comm, 1, nullptr);
      },
      "trestle: out of memory on the library's \\w+ thread: the process ends");
}

constexpr size_t kSmall = 2048;      // 8 KiB
constexpr size_t kLarge = 16 << 20;  // 64 MiB

// Two ranks of one process. Calls of rank 0 stay under way until rank 1 makes the same ones.
struct Pair {
  trestleComm_t comms[2] = {};
  std::vector<float> data[2] = {std::vector<float>(kLarge), std::vector<float>(kLarge)};

  Pair() { EXPECT_EQ(trestleCommInitAll(comms, 2, nullptr), trestleSuccess); }
  ~Pair() {
    for (trestleComm_t comm : comms) EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // Returns how often the call allocated.
  int issue(int rank, size_t count) {
    float* const values = data[rank].data();
    const int before = allocations::made();
    const trestleResult_t result =
        trestleAllReduce(values, values, count, trestleFloat32, trestleSum, comms[rank], nullptr);
    const int after = allocations::made();
    EXPECT_EQ(result, trestleSuccess);
    return after - before;
  }
  // Two calls in a row on every rank. Returns how often the second one of rank 0 allocated.
  int issue_two(size_t count) {
    issue(0, count);
    const int second = issue(0, count);
    issue(1, count);
    issue(1, count);
    for (trestleComm_t comm : comms) EXPECT_EQ(trestleCommSynchronize(comm), trestleSuccess);
    return second;
  }
};

TEST(ApiMemory, IssuingALargeCallAllocatesAsOftenAsASmallOne) {
  ranks::isolated(
      [] {
        Pair pair;
        for (const size_t count : {kSmall, kLarge}) pair.issue_two(count);
        const int small = pair.issue_two(kSmall);
        EXPECT_EQ(pair.issue_two(kLarge), small);
      },
      {{"TRESTLE_EXPRESS", "0"}});
}

}  // namespace
}  // namespace api_memory_test
}  // namespace api
