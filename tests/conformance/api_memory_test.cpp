// The C functions without memory: they return a code and never throw an exception into the caller's frames. And how
// often issuing a call takes memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/allocations.h"
#include "support/ranks.h"

namespace api {
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
}  // namespace api
