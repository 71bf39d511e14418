// Send and receive buffers that share memory: in place as the header says, or refused, at any offset.
#include <gtest/gtest.h>

#include <functional>

#include "support/ranks.h"

namespace api {
namespace overlap_test {
namespace {

using ranks::refused;
using ranks::succeeded;

constexpr size_t kCount = 3;
constexpr int kRanks = 3;
constexpr int kRank = 1;  // the caller, and the root
constexpr int kFar = 20;
const auto kType = trestleFloat32;

struct Case {
  const char* name;
  int sent;      // elements
  int received;  // elements
  int in_place;  // recv - send
  const char* rule;
  std::function<trestleResult_t(const float* send, float* recv, trestleComm_t comm)> call;
};

// A request that is refused, or dropped with its group.
struct Requested {
  trestleRequest_t request = nullptr;
  ~Requested() {
    if (request != nullptr) late.push_back(request);
  }
  static std::vector<trestleRequest_t> late;  // freed when the group has ended
};
std::vector<trestleRequest_t> Requested::late;

const std::vector<Case>& cases() {
  constexpr int kOne = kCount;
  constexpr int kAll = kCount * kRanks;
  static const std::vector<Case> all = {
      {"AllReduce", kOne, kOne, 0, "send == recv",
       [](const float* s, float* r, trestleComm_t c) {
         return trestleAllReduce(s, r, kCount, kType, trestleSum, c, nullptr);
       }},
      {"Broadcast", kOne, kOne, 0, "send == recv",
       [](const float* s, float* r, trestleComm_t c) {
         return trestleBroadcast(s, r, kCount, kType, kRank, c, nullptr);
       }},
      {"Reduce", kOne, kOne, 0, "send == recv",
       [](const float* s, float* r, trestleComm_t c) {
         return trestleReduce(s, r, kCount, kType, trestleSum, kRank, c, nullptr);
       }},
      {"AllToAll", kAll, kAll, 0, "send == recv",
       [](const float* s, float* r, trestleComm_t c) { return trestleAllToAll(s, r, kCount, kType, c, nullptr); }},
      {"ReduceScatter", kAll, kOne, kRank * kOne, "recv == send + rank*recvcount",
       [](const float* s, float* r, trestleComm_t c) {
         return trestleReduceScatter(s, r, kCount, kType, trestleSum, c, nullptr);
       }},
      {"Scatter", kAll, kOne, kRank * kOne, "recv == send + rank*count",
       [](const float* s, float* r, trestleComm_t c) {
         return trestleScatter(s, r, kCount, kType, kRank, c, nullptr);
       }},
      {"AllGather", kOne, kAll, -kRank * kOne, "send == recv + rank*count",
       [](const float* s, float* r, trestleComm_t c) { return trestleAllGather(s, r, kCount, kType, c, nullptr); }},
      {"Gather", kOne, kAll, -kRank * kOne, "send == recv + rank*count",
       [](const float* s, float* r, trestleComm_t c) { return trestleGather(s, r, kCount, kType, kRank, c, nullptr); }},
      {"AllReduceStart", kOne, kOne, 0, "send == recv",
       [](const float* s, float* r, trestleComm_t c) {
         Requested made;
         return trestleAllReduceStart(s, r, kCount, kType, trestleSum, c, nullptr, &made.request);
       }},
      {"AllReduceStartInit", kOne, kOne, 0, "send == recv",
       [](const float* s, float* r, trestleComm_t c) {
         Requested made;
         return trestleAllReduceStartInit(s, r, kCount, kType, trestleSum, c, nullptr, &made.request);
       }},
      {"AllReduceInit", kOne, kOne, 0, "send == recv",
       [](const float* s, float* r, trestleComm_t c) {
         Requested made;
         return trestleAllReduceInit(s, r, kCount, kType, trestleSum, c, nullptr, &made.request);
       }},
      {"AllGatherInit", kOne, kAll, -kRank * kOne, "send == recv + rank*count",
       [](const float* s, float* r, trestleComm_t c) {
         Requested made;
         return trestleAllGatherInit(s, r, kCount, kType, c, nullptr, &made.request);
       }},
  };
  return all;
}

// Makes the call in a group that is refused as a whole, so that nothing runs.
trestleResult_t checked_only(const Case& c, const float* send, float* recv, trestleComm_t comm, std::string& sentence) {
  EXPECT_TRUE(succeeded(trestleGroupStart()));
  const trestleResult_t result = c.call(send, recv, comm);
  sentence = trestleGetLastError(nullptr);
  EXPECT_EQ(trestleBarrier(nullptr, nullptr), trestleInvalidArgument);
  EXPECT_EQ(trestleGroupEnd(), trestleInvalidArgument);
  for (trestleRequest_t request : Requested::late) EXPECT_TRUE(succeeded(trestleRequestFree(request)));
  Requested::late.clear();
  return result;
}

TEST(ApiOverlap, IsInPlaceOrRefused) {
  ranks::isolated([] {
    trestleComm_t comms[kRanks] = {};
    ASSERT_TRUE(succeeded(trestleCommInitAll(comms, kRanks, nullptr)));
    std::vector<float> arena(3 * kFar);
    float* const send = arena.data() + kFar;
    for (const Case& c : cases()) {
      for (int offset = -kFar; offset <= kFar; ++offset) {
        SCOPED_TRACE(testing::Message() << c.name << ", recv - send " << offset);
        std::string sentence;
        const trestleResult_t result = checked_only(c, send, send + offset, comms[kRank], sentence);
        const bool shared = offset > -c.received && offset < c.sent;
        if (!shared || offset == c.in_place) {
          EXPECT_EQ(result, trestleSuccess) << sentence;
          continue;
        }
        EXPECT_EQ(result, trestleInvalidArgument);
        for (const std::string& fact : {std::string(c.name) + ": ", std::string("overlap"), std::string(c.rule)}) {
          EXPECT_TRUE(ranks::contains(sentence, fact)) << fact << " is not in: " << sentence;
        }
      }
    }
    for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

// Memory that a rank neither reads nor writes does not matter.
TEST(ApiOverlap, OfBuffersThatAreNotLookedAtIsNone) {
  ranks::on_threads({.ranks = 2}, [](int rank, trestleComm_t comm) {
    std::vector<float> x(8, static_cast<float>(rank));
    ASSERT_TRUE(
        succeeded(trestleBroadcast(x.data() + (rank == 0 ? 0 : 1), x.data(), 4, kType, 0, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(x[3], 0);
    ASSERT_TRUE(succeeded(
        trestleReduce(x.data(), x.data() + (rank == 0 ? 0 : 1), 4, kType, trestleSum, 0, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleGather(x.data(), x.data() + (rank == 0 ? 0 : 1), 2, kType, 0, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleScatter(x.data() + (rank == 0 ? 0 : 1), x.data(), 2, kType, 0, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleAllReduce(x.data() + 1, x.data(), 0, kType, trestleSum, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  });
}

}  // namespace
}  // namespace overlap_test
}  // namespace api
