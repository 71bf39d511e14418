// Collectives and messages with wrong arguments. Each call returns its code and a sentence that names the function and
// the error. Nothing is written or enqueued, and the communicators work afterwards.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>

#include "conformance/api_vector_call.h"
#include "support/ranks.h"

namespace api {
namespace bad_collectives_test {
namespace {

using ranks::refused;
using ranks::succeeded;
using Sizes = std::vector<size_t>;  // none: NULL

float sent[30];
float received[30];

// Besides the collectives.
constexpr auto kSend = static_cast<trestleCollective_t>(100);
constexpr auto kRecv = static_cast<trestleCollective_t>(101);
constexpr auto kPredictTime = static_cast<trestleCollective_t>(102);

// A call as a program may write it. The arguments that are not given are right for rank 0 of two or three.
struct RawCall {
  trestleCollective_t function;
  float* send = sent;
  float* recv = received;
  size_t count = 1;  // of the v-variants: of rank 0's own block
  int type = trestleFloat32;
  int op = trestleSum;
  int root = 1;  // or the peer
  bool comm = true;
  trestleCollective_t predicted = trestleCollAllReduce;
  Sizes counts = {1, 1, 1};  // of all-to-all-v: to send
  Sizes displs = {};
  Sizes recv_counts = {1, 1, 1};  // of all-to-all-v
  Sizes recv_displs = {};
};

struct BadCollective {
  RawCall call;
  std::vector<std::string> facts;
};

const size_t* list(const Sizes& sizes) {
  return sizes.empty() ? nullptr : sizes.data();
}

// Of the function, as sentences begin.
std::string name_of(trestleCollective_t function) {
  static const std::map<trestleCollective_t, std::string> kNames = {{trestleCollAllReduce, "AllReduce:"},
                                                                    {trestleCollReduceScatter, "ReduceScatter:"},
                                                                    {trestleCollAllGather, "AllGather:"},
                                                                    {trestleCollBroadcast, "Broadcast:"},
                                                                    {trestleCollReduce, "Reduce:"},
                                                                    {trestleCollAllToAll, "AllToAll:"},
                                                                    {trestleCollGather, "Gather:"},
                                                                    {trestleCollScatter, "Scatter:"},
                                                                    {trestleCollBarrier, "Barrier:"},
                                                                    {trestleCollAllGatherV, "AllGatherV:"},
                                                                    {trestleCollReduceScatterV, "ReduceScatterV:"},
                                                                    {trestleCollAllToAllV, "AllToAllV:"},
                                                                    {trestleCollGatherV, "GatherV:"},
                                                                    {trestleCollScatterV, "ScatterV:"},
                                                                    {kSend, "Send:"},
                                                                    {kRecv, "Recv:"},
                                                                    {kPredictTime, "PredictTime:"}};
  return kNames.at(function);
}

trestleResult_t make_call(const RawCall& c, trestleComm_t comm) {
  const auto type = static_cast<trestleDataType_t>(c.type);
  if (!c.comm) comm = nullptr;
  double time = 0;
  if (c.function == kSend) return trestleSend(c.send, c.count, type, c.root, comm, nullptr);
  if (c.function == kRecv) return trestleRecv(c.recv, c.count, type, c.root, comm, nullptr);
  if (c.function == kPredictTime) return trestlePredictTime(comm, c.predicted, c.count, type, &time);
  AnyCall made{c.function, c.send, c.recv, c.count, type, static_cast<trestleRedOp_t>(c.op), c.root};
  made.sendcounts = list(c.counts);
  made.sdispls = list(c.displs);
  const bool both = c.function == trestleCollAllToAllV;
  made.recvcounts = list(both ? c.recv_counts : c.counts);
  made.rdispls = list(both ? c.recv_displs : c.displs);
  return start(made, comm, nullptr);
}

// Makes one call on all ranks.
template <class Execution, class Call>
void run_one(const std::vector<trestleComm_t>& comms, const Call& call) {
  const int n = static_cast<int>(comms.size());
  std::vector<std::unique_ptr<Execution>> runs;
  for (int r = 0; r < n; ++r) {
    runs.push_back(std::make_unique<Execution>(call, r, n));
    ASSERT_TRUE(succeeded(runs.back()->start(comms[static_cast<size_t>(r)], nullptr)));
  }
  for (size_t r = 0; r < comms.size(); ++r) {
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comms[r]), comms[r]));
    EXPECT_EQ(runs[r]->verify(), "");
  }
}

void expect_all_refused(size_t n, const std::vector<BadCollective>& calls) {
  ranks::isolated(
      [&] {
        std::vector<trestleComm_t> comms(n);
        ASSERT_TRUE(succeeded(trestleCommInitAll(comms.data(), static_cast<int>(n), nullptr)));
        for (const BadCollective& bad : calls) {
          std::vector<std::string> facts = bad.facts;
          facts.push_back(name_of(bad.call.function));
          EXPECT_TRUE(refused(make_call(bad.call, comms[0]), trestleInvalidArgument, facts))
              << facts.back() << " " << facts.front();
          trestleResult_t state = trestleInternalError;
          EXPECT_TRUE(succeeded(trestleCommGetAsyncError(comms[0], &state)));
          EXPECT_EQ(state, trestleSuccess) << "a refusal is no failure of the communicator";
        }
        for (const float v : received) EXPECT_EQ(v, 0.0F);
        run_one<Execution>(comms, Call{.count = 5000});
        for (const trestleCollective_t collective : kUnevenCollectives)
          run_one<VectorExecution>(comms, VectorCall{.collective = collective, .root = 1, .seed = 4});
        for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      },
      {}, 60);
}

TEST(ApiBadCollectives, Arguments) {
  expect_all_refused(
      2, {{{.function = trestleCollAllReduce, .send = nullptr}, {"send"}},
          {{.function = trestleCollAllReduce, .recv = nullptr}, {"receive"}},
          {{.function = trestleCollAllReduce, .comm = false}, {"comm"}},
          {{.function = trestleCollAllReduce, .type = 12}, {"type", "12"}},
          {{.function = trestleCollAllReduce, .type = -1}, {"type", "-1"}},
          {{.function = trestleCollAllReduce, .type = 263}, {"type", "263"}},
          {{.function = trestleCollAllReduce, .op = 5}, {"operator", "5"}},
          {{.function = trestleCollAllReduce, .op = 256}, {"operator", "256"}},
          {{.function = trestleCollReduceScatter, .send = nullptr}, {"send"}},
          {{.function = trestleCollAllGather, .recv = nullptr}, {"receive"}},
          {{.function = trestleCollAllGather, .type = 12}, {"type"}},
          {{.function = trestleCollBroadcast, .root = 2}, {"root", "2"}},
          {{.function = trestleCollBroadcast, .root = -1}, {"root", "-1"}},
          {{.function = trestleCollBroadcast, .send = nullptr, .root = 0}, {"send"}},
          {{.function = trestleCollBroadcast, .recv = nullptr}, {"receive"}},
          {{.function = trestleCollReduce, .recv = nullptr, .root = 0}, {"receive"}},
          {{.function = trestleCollReduce, .root = 9}, {"root", "9"}},
          {{.function = trestleCollAllToAll, .send = nullptr}, {"send"}},
          {{.function = trestleCollGather, .root = 3}, {"root", "3"}},
          {{.function = trestleCollGather, .send = nullptr}, {"send"}},
          {{.function = trestleCollGather, .recv = nullptr, .root = 0}, {"receive"}},
          {{.function = trestleCollGather, .send = received + 1, .count = 4, .root = 0}, {"overlap", "in place"}},
          {{.function = trestleCollScatter, .root = -1}, {"root", "-1"}},
          {{.function = trestleCollScatter, .send = nullptr, .root = 0}, {"send"}},
          {{.function = trestleCollScatter, .recv = nullptr}, {"receive"}},
          {{.function = trestleCollScatter, .comm = false}, {"comm"}},
          {{.function = trestleCollScatter, .recv = sent + 4, .count = 4, .root = 0}, {"overlap"}},
          {{.function = kSend, .send = nullptr}, {"buffer"}},
          {{.function = kSend, .root = 2}, {"peer", "2"}},
          {{.function = kRecv, .root = -1}, {"peer", "-1"}},
          {{.function = kRecv, .recv = nullptr}, {"buffer"}},
          {{.function = trestleCollBarrier, .comm = false}, {"comm"}}});
}

// Counts whose bytes overflow: of one buffer, of the blocks of both ranks, and counts that wrap around to a few bytes.
TEST(ApiBadCollectives, CountsThatOverflow) {
  constexpr size_t kTwoTo62 = size_t{1} << 62;
  const trestleCollective_t gather = trestleCollAllGather;
  expect_all_refused(2,
                     {{{.function = trestleCollAllReduce, .count = SIZE_MAX / 2}, {"count"}},
                      {{.function = trestleCollAllReduce, .count = kTwoTo62 + 1}, {"count"}},
                      {{.function = trestleCollReduceScatter, .count = SIZE_MAX / 4}, {"count"}},
                      {{.function = trestleCollAllGather, .count = SIZE_MAX / 4}, {"count"}},
                      {{.function = trestleCollAllGather, .count = kTwoTo62}, {"count"}},
                      {{.function = trestleCollAllGather, .count = SIZE_MAX / 2 + 3, .type = trestleInt8}, {"count"}},
                      {{.function = trestleCollAllToAll, .count = SIZE_MAX / 4}, {"count"}},
                      {{.function = trestleCollAllToAll, .count = kTwoTo62 + 1}, {"count"}},
                      {{.function = trestleCollGather, .count = static_cast<size_t>(-3), .root = 0}, {"count"}},
                      {{.function = kSend, .count = SIZE_MAX / 2}, {"count"}},
                      {{.function = kSend, .count = kTwoTo62 + 1}, {"count"}},
                      {{.function = kRecv, .count = kTwoTo62 + 1}, {"count"}},
                      {{.function = kPredictTime, .count = SIZE_MAX / 2}, {"count"}},
                      {{.function = kPredictTime, .count = kTwoTo62 + 1, .predicted = gather}, {"count"}}});
}

TEST(ApiBadCollectives, RootedBlocks) {
  const auto minus_3 = static_cast<size_t>(-3);
  expect_all_refused(
      3, {{{.function = trestleCollGatherV, .root = 7}, {"root", "7"}},
          {{.function = trestleCollGatherV, .root = 0, .counts = {}}, {"recvcounts", "NULL"}},
          {{.function = trestleCollGatherV, .count = 2, .root = 0}, {"sendcount is 2", "recvcounts[0] is 1"}},
          {{.function = trestleCollGatherV, .count = minus_3, .counts = {}}, {"-3"}},
          {{.function = trestleCollGatherV, .send = nullptr, .count = 2, .counts = {}}, {"send"}},
          {{.function = trestleCollScatterV, .root = 0, .counts = {}}, {"sendcounts", "NULL"}},
          {{.function = trestleCollScatterV, .count = 2, .root = 0}, {"recvcount is 2", "sendcounts[0] is 1"}},
          {{.function = trestleCollScatterV, .send = nullptr, .count = 0, .root = 0, .counts = {0, 1, 1}}, {"send"}},
          {{.function = trestleCollScatterV, .type = 99, .root = 0}, {"type", "99"}}});
}

TEST(ApiBadCollectives, BlocksOfAllRanks) {
  const auto minus_3 = static_cast<size_t>(-3);
  constexpr size_t kTwoTo59 = size_t{1} << 59;
  const Sizes twos = {2, 2, 2};
  expect_all_refused(
      3,
      {{{.function = trestleCollAllGatherV, .counts = {}}, {"recvcounts", "NULL"}},
       {{.function = trestleCollAllGatherV, .counts = {1, minus_3, 1}}, {"recvcounts[1] is -3"}},
       {{.function = trestleCollAllGatherV, .displs = {0, 1, minus_3}}, {"displs[2] is -3"}},
       {{.function = trestleCollAllGatherV, .counts = {1, 1, SIZE_MAX / 2}}, {"rank 2", "overflow"}},
       {{.function = trestleCollAllGatherV, .counts = {1, kTwoTo59, kTwoTo59}}, {"rank 2", "overflow"}},
       {{.function = trestleCollAllGatherV, .counts = {1, 2, 1}, .displs = {0, 2 * kTwoTo59 - 1, 1}},
        {"rank 1", "overflow"}},
       {{.function = trestleCollAllGatherV, .count = 4, .counts = {4, 2, 2}, .displs = {2, 0, 5}},
        {"0 (elements 2 to 5)", "2 (elements 5 to 6)", "overlap"}},
       {{.function = trestleCollAllGatherV, .count = 10, .counts = {10, 1, 1}, .displs = {0, 3, 20}},
        {"0 (elements 0 to 9)", "1 (elements 3 to 3)", "overlap"}},
       {{.function = trestleCollAllGatherV, .count = 2}, {"sendcount is 2", "recvcounts[0] is 1"}},
       {{.function = trestleCollAllGatherV, .recv = nullptr, .count = 0, .counts = {0, 1, 0}}, {"receive"}},
       {{.function = trestleCollAllGatherV, .send = received + 1, .count = 2, .counts = twos}, {"overlap", "in place"}},
       {{.function = trestleCollReduceScatterV, .counts = {}}, {"recvcounts", "NULL"}},
       {{.function = trestleCollReduceScatterV, .op = 77}, {"operator", "77"}},
       {{.function = trestleCollReduceScatterV, .recv = sent + 2, .counts = twos}, {"overlap"}},
       {{.function = trestleCollReduceScatterV, .send = nullptr}, {"send"}},
       {{.function = trestleCollAllToAllV, .counts = {}}, {"sendcounts", "NULL"}},
       {{.function = trestleCollAllToAllV, .recv_counts = {}}, {"recvcounts", "NULL"}},
       {{.function = trestleCollAllToAllV, .recv_counts = {2, 1, 1}}, {"sendcounts[0] is 1", "recvcounts[0] is 2"}},
       {{.function = trestleCollAllToAllV, .displs = {0, minus_3, 2}}, {"sdispls[1] is -3"}},
       {{.function = trestleCollAllToAllV, .recv_counts = {1, 2, 1}, .recv_displs = {0, 1, 2}},
        {"1 (elements 1 to 2)", "2 (elements 2 to 2)", "overlap"}},
       {{.function = trestleCollAllToAllV, .recv = sent, .recv_counts = {1, 2, 1}}, {"in place", "sdispls"}},
       {{.function = trestleCollAllToAllV, .recv = nullptr}, {"receive"}}});
}

// The library ignores arrays and buffers of ranks that are not the root, and the displacement of an empty block.
TEST(ApiBadCollectives, WhatDoesNotMatterIsNotLookedAt) {
  ranks::on_threads({.ranks = 3}, [](int rank, trestleComm_t comm) {
    const auto* poison = reinterpret_cast<const size_t*>(uintptr_t{8});
    auto* nowhere = reinterpret_cast<float*>(uintptr_t{8});
    float send[3] = {rank + 1.0F, rank + 2.0F, rank + 3.0F};
    float recv[3] = {};
    const size_t ones[3] = {1, 1, 1};
    const bool root = rank == 2;
    EXPECT_TRUE(succeeded(trestleGatherV(send, 1, root ? recv : nowhere, root ? ones : poison, root ? nullptr : poison,
                                         trestleFloat32, 2, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    if (root) {
      EXPECT_EQ(recv[0] + 10 * recv[1] + 100 * recv[2], 321.0F);
    }
    EXPECT_TRUE(succeeded(trestleScatterV(root ? send : nowhere, root ? ones : poison, root ? nullptr : poison, recv, 1,
                                          trestleFloat32, 2, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_EQ(recv[0], 3.0F + static_cast<float>(rank));
    const size_t counts[3] = {0, 2, 0};
    const size_t displs[3] = {SIZE_MAX, 1, SIZE_MAX / 4};
    EXPECT_TRUE(succeeded(trestleAllGatherV(rank == 1 ? send : nullptr, counts[rank], recv, counts, displs,
                                            trestleFloat32, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_EQ(recv[1] + 10 * recv[2], 32.0F);
    const size_t none[3] = {0, 0, 0};
    EXPECT_TRUE(
        succeeded(trestleAllToAllV(nullptr, none, nullptr, nullptr, none, nullptr, trestleFloat32, comm, nullptr)));
    EXPECT_TRUE(succeeded(trestleAllGatherV(nullptr, 0, nullptr, none, nullptr, trestleFloat32, comm, nullptr)));
    EXPECT_TRUE(succeeded(trestleReduceScatterV(nullptr, nullptr, none, trestleFloat32, trestleSum, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
  });
}

}  // namespace
}  // namespace bad_collectives_test
}  // namespace api
