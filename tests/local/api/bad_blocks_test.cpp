// Gather, scatter and the v-variants with wrong arguments. Each call returns its code and a sentence that names the
// error. Nothing is written or enqueued, and the communicator works afterwards.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "conformance/api_vector_call.h"
#include "support/ranks.h"

namespace api {
namespace {

using ranks::refused;
using ranks::succeeded;

// Three ranks of one thread; the calls are rank 0's.
struct World {
  trestleComm_t comms[3] = {};
  trestleComm_t comm = nullptr;
  float a[30] = {};
  float b[30] = {};
  float* n = nullptr;  // no buffer
};
using Sizes = std::vector<size_t>;

struct BadCall {
  const char* name;
  std::vector<std::string> facts;
  std::function<trestleResult_t(World&)> call;
};

const auto kType = trestleFloat32;
const auto kMinus3 = static_cast<size_t>(-3);

trestleResult_t all_gather(World& w, size_t count, const Sizes& counts, const Sizes& displs) {
  return trestleAllGatherV(w.a, count, w.b, counts.data(), displs.empty() ? nullptr : displs.data(), kType, w.comm,
                           nullptr);
}

std::vector<BadCall> rooted_calls() {
  return {
      {"gather, root",
       {"Gather", "root", "3"},
       [](World& w) { return trestleGather(w.a, w.b, 1, kType, 3, w.comm, nullptr); }},
      {"gather, no send",
       {"Gather", "send"},
       [](World& w) { return trestleGather(w.n, w.b, 1, kType, 1, w.comm, nullptr); }},
      {"gather, root without receive",
       {"Gather", "receive"},
       [](World& w) { return trestleGather(w.a, w.n, 1, kType, 0, w.comm, nullptr); }},
      {"gather, negative count",
       {"Gather", "count"},
       [](World& w) { return trestleGather(w.a, w.b, kMinus3, kType, 0, w.comm, nullptr); }},
      {"gather, not quite in place",
       {"Gather", "overlap", "in place"},
       [](World& w) { return trestleGather(w.b + 1, w.b, 4, kType, 0, w.comm, nullptr); }},
      {"scatter, negative root",
       {"Scatter", "root", "-1"},
       [](World& w) { return trestleScatter(w.a, w.b, 1, kType, -1, w.comm, nullptr); }},
      {"scatter, root without send",
       {"Scatter", "send"},
       [](World& w) { return trestleScatter(w.n, w.b, 1, kType, 0, w.comm, nullptr); }},
      {"scatter, no receive",
       {"Scatter", "receive"},
       [](World& w) { return trestleScatter(w.a, w.n, 1, kType, 1, w.comm, nullptr); }},
      {"scatter, no communicator",
       {"Scatter", "comm"},
       [](World& w) { return trestleScatter(w.a, w.b, 1, kType, 0, nullptr, nullptr); }},
      {"scatter, receives into another's block",
       {"Scatter", "overlap"},
       [](World& w) { return trestleScatter(w.a, w.a + 4, 4, kType, 0, w.comm, nullptr); }},
      {"gather-v, root",
       {"GatherV", "root", "7"},
       [](World& w) {
         return trestleGatherV(w.a, 1, w.b, Sizes{1, 1, 1}.data(), nullptr, kType, 7, w.comm, nullptr);
       }},
      {"gather-v, no counts",
       {"GatherV", "recvcounts", "NULL"},
       [](World& w) { return trestleGatherV(w.a, 1, w.b, nullptr, nullptr, kType, 0, w.comm, nullptr); }},
      {"gather-v, own count",
       {"GatherV", "sendcount is 2", "recvcounts[0] is 1"},
       [](World& w) {
         return trestleGatherV(w.a, 2, w.b, Sizes{1, 1, 1}.data(), nullptr, kType, 0, w.comm, nullptr);
       }},
      {"gather-v, negative own count",
       {"GatherV", "-3"},
       [](World& w) { return trestleGatherV(w.a, kMinus3, w.b, nullptr, nullptr, kType, 1, w.comm, nullptr); }},
      {"gather-v, no send",
       {"GatherV", "send"},
       [](World& w) { return trestleGatherV(w.n, 2, w.b, nullptr, nullptr, kType, 1, w.comm, nullptr); }},
      {"scatter-v, no counts",
       {"ScatterV", "sendcounts", "NULL"},
       [](World& w) { return trestleScatterV(w.a, nullptr, nullptr, w.b, 1, kType, 0, w.comm, nullptr); }},
      {"scatter-v, own count",
       {"ScatterV", "recvcount is 2", "sendcounts[0] is 1"},
       [](World& w) {
         return trestleScatterV(w.a, Sizes{1, 1, 1}.data(), nullptr, w.b, 2, kType, 0, w.comm, nullptr);
       }},
      {"scatter-v, root without send",
       {"ScatterV", "send"},
       [](World& w) {
         return trestleScatterV(w.n, Sizes{0, 1, 1}.data(), nullptr, w.b, 0, kType, 0, w.comm, nullptr);
       }},
      {"scatter-v, unknown type",
       {"ScatterV", "type", "99"},
       [](World& w) {
         return trestleScatterV(w.a, Sizes{1, 1, 1}.data(), nullptr, w.b, 1, static_cast<trestleDataType_t>(99), 0,
                                w.comm, nullptr);
       }},
  };
}

std::vector<BadCall> calls_of_all() {
  return {
      {"all-gather-v, no counts",
       {"AllGatherV", "recvcounts", "NULL"},
       [](World& w) { return trestleAllGatherV(w.a, 1, w.b, nullptr, nullptr, kType, w.comm, nullptr); }},
      {"all-gather-v, negative count",
       {"AllGatherV", "recvcounts[1] is -3"},
       [](World& w) {
         return all_gather(w, 1, {1, kMinus3, 1}, {});
       }},
      {"all-gather-v, negative displacement",
       {"AllGatherV", "displs[2] is -3"},
       [](World& w) {
         return all_gather(w, 1, {1, 1, 1}, {0, 1, kMinus3});
       }},
      {"all-gather-v, count overflows",
       {"AllGatherV", "rank 2", "overflow"},
       [](World& w) {
         return all_gather(w, 1, {1, 1, SIZE_MAX / 2}, {});
       }},
      {"all-gather-v, sum overflows",
       {"AllGatherV", "rank 2", "overflow"},
       [](World& w) {
         return all_gather(w, 1, {1, size_t{1} << 59, size_t{1} << 59}, {});
       }},
      {"all-gather-v, end overflows",
       {"AllGatherV", "rank 1", "overflow"},
       [](World& w) {
         return all_gather(w, 1, {1, 2, 1}, {0, (size_t{1} << 60) - 1, 1});
       }},
      {"all-gather-v, blocks overlap",
       {"AllGatherV", "0 (elements 2 to 5)", "2 (elements 5 to 6)", "overlap"},
       [](World& w) {
         return all_gather(w, 4, {4, 2, 2}, {2, 0, 5});
       }},
      {"all-gather-v, block in block",
       {"AllGatherV", "0 (elements 0 to 9)", "1 (elements 3 to 3)", "overlap"},
       [](World& w) {
         return all_gather(w, 10, {10, 1, 1}, {0, 3, 20});
       }},
      {"all-gather-v, own count",
       {"AllGatherV", "sendcount is 2", "recvcounts[0] is 1"},
       [](World& w) {
         return all_gather(w, 2, {1, 1, 1}, {});
       }},
      {"all-gather-v, no receive",
       {"AllGatherV", "receive"},
       [](World& w) {
         return trestleAllGatherV(w.a, 0, w.n, Sizes{0, 1, 0}.data(), nullptr, kType, w.comm, nullptr);
       }},
      {"all-gather-v, not quite in place",
       {"AllGatherV", "overlap", "in place"},
       [](World& w) {
         return trestleAllGatherV(w.b + 1, 2, w.b, Sizes{2, 2, 2}.data(), nullptr, kType, w.comm, nullptr);
       }},
      {"reduce-scatter-v, no counts",
       {"ReduceScatterV", "recvcounts", "NULL"},
       [](World& w) { return trestleReduceScatterV(w.a, w.b, nullptr, kType, trestleSum, w.comm, nullptr); }},
      {"reduce-scatter-v, operator",
       {"ReduceScatterV", "operator", "77"},
       [](World& w) {
         return trestleReduceScatterV(w.a, w.b, Sizes{1, 1, 1}.data(), kType, static_cast<trestleRedOp_t>(77), w.comm,
                                      nullptr);
       }},
      {"reduce-scatter-v, not quite in place",
       {"ReduceScatterV", "overlap"},
       [](World& w) {
         return trestleReduceScatterV(w.a, w.a + 2, Sizes{2, 2, 2}.data(), kType, trestleSum, w.comm, nullptr);
       }},
      {"reduce-scatter-v, no send",
       {"ReduceScatterV", "send"},
       [](World& w) {
         return trestleReduceScatterV(w.n, w.b, Sizes{1, 1, 1}.data(), kType, trestleSum, w.comm, nullptr);
       }},
      {"all-to-all-v, no send counts",
       {"AllToAllV", "sendcounts", "NULL"},
       [](World& w) {
         return trestleAllToAllV(w.a, nullptr, nullptr, w.b, Sizes{1, 1, 1}.data(), nullptr, kType, w.comm, nullptr);
       }},
      {"all-to-all-v, no receive counts",
       {"AllToAllV", "recvcounts", "NULL"},
       [](World& w) {
         return trestleAllToAllV(w.a, Sizes{1, 1, 1}.data(), nullptr, w.b, nullptr, nullptr, kType, w.comm, nullptr);
       }},
      {"all-to-all-v, to itself",
       {"AllToAllV", "sendcounts[0] is 1", "recvcounts[0] is 2"},
       [](World& w) {
         return trestleAllToAllV(w.a, Sizes{1, 1, 1}.data(), nullptr, w.b, Sizes{2, 1, 1}.data(), nullptr, kType,
                                 w.comm, nullptr);
       }},
      {"all-to-all-v, negative displacement",
       {"AllToAllV", "sdispls[1] is -3"},
       [](World& w) {
         return trestleAllToAllV(w.a, Sizes{1, 1, 1}.data(), Sizes{0, kMinus3, 2}.data(), w.b, Sizes{1, 1, 1}.data(),
                                 nullptr, kType, w.comm, nullptr);
       }},
      {"all-to-all-v, receive blocks overlap",
       {"AllToAllV", "1 (elements 1 to 2)", "2 (elements 2 to 2)", "overlap"},
       [](World& w) {
         return trestleAllToAllV(w.a, Sizes{1, 1, 1}.data(), nullptr, w.b, Sizes{1, 2, 1}.data(), Sizes{0, 1, 2}.data(),
                                 kType, w.comm, nullptr);
       }},
      {"all-to-all-v, in place with different lists",
       {"AllToAllV", "in place", "sdispls"},
       [](World& w) {
         return trestleAllToAllV(w.a, Sizes{1, 1, 1}.data(), nullptr, w.a, Sizes{1, 2, 1}.data(), nullptr, kType,
                                 w.comm, nullptr);
       }},
      {"all-to-all-v, no receive",
       {"AllToAllV", "receive"},
       [](World& w) {
         return trestleAllToAllV(w.a, Sizes{1, 1, 1}.data(), nullptr, w.n, Sizes{1, 1, 1}.data(), nullptr, kType,
                                 w.comm, nullptr);
       }},
  };
}

// Makes one call on all ranks.
void run_one(World& world, const VectorCall& call) {
  std::vector<std::unique_ptr<VectorExecution>> runs;
  for (int r = 0; r < 3; ++r) {
    runs.push_back(std::make_unique<VectorExecution>(call, r, 3));
    ASSERT_TRUE(succeeded(runs.back()->start(world.comms[r], nullptr), world.comms[r]));
  }
  for (int r = 0; r < 3; ++r) {
    ASSERT_TRUE(succeeded(trestleCommSynchronize(world.comms[r]), world.comms[r]));
    EXPECT_EQ(runs[static_cast<size_t>(r)]->verify(), "");
  }
}

void expect_refused(const std::vector<BadCall>& calls) {
  ranks::isolated(
      [&] {
        World world;
        ASSERT_TRUE(succeeded(trestleCommInitAll(world.comms, 3, nullptr)));
        world.comm = world.comms[0];
        for (const BadCall& bad : calls) {
          EXPECT_TRUE(refused(bad.call(world), trestleInvalidArgument, bad.facts)) << bad.name;
          trestleResult_t state = trestleInternalError;
          EXPECT_TRUE(succeeded(trestleCommGetAsyncError(world.comm, &state)));
          EXPECT_EQ(state, trestleSuccess) << bad.name << " is no failure of the communicator";
        }
        for (const float v : world.b) EXPECT_EQ(v, 0.0F);
        for (const trestleCollective_t collective : kUnevenCollectives) {
          run_one(world, {.collective = collective, .root = 1, .seed = 4});
        }
        for (trestleComm_t comm : world.comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      },
      {}, 60);
}

TEST(ApiBadBlocks, GatherAndScatter) {
  expect_refused(rooted_calls());
}
TEST(ApiBadBlocks, OfAllRanks) {
  expect_refused(calls_of_all());
}

// The library ignores arrays and buffers of ranks that are not the root, and the displacement of an empty block.
TEST(ApiBadBlocks, WhatDoesNotMatterIsNotLookedAt) {
  ranks::on_threads({.ranks = 3}, [](int rank, trestleComm_t comm) {
    const auto* poison = reinterpret_cast<const size_t*>(uintptr_t{8});
    auto* nowhere = reinterpret_cast<float*>(uintptr_t{8});
    float send[3] = {rank + 1.0F, rank + 2.0F, rank + 3.0F};
    float recv[3] = {};
    const size_t ones[3] = {1, 1, 1};
    const bool root = rank == 2;
    EXPECT_TRUE(succeeded(trestleGatherV(send, 1, root ? recv : nowhere, root ? ones : poison, root ? nullptr : poison,
                                         kType, 2, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    if (root) {
      EXPECT_EQ(recv[0] + 10 * recv[1] + 100 * recv[2], 321.0F);
    }
    EXPECT_TRUE(succeeded(trestleScatterV(root ? send : nowhere, root ? ones : poison, root ? nullptr : poison, recv, 1,
                                          kType, 2, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_EQ(recv[0], 3.0F + static_cast<float>(rank));
    const size_t counts[3] = {0, 2, 0};
    const size_t displs[3] = {SIZE_MAX, 1, SIZE_MAX / 4};
    EXPECT_TRUE(succeeded(
        trestleAllGatherV(rank == 1 ? send : nullptr, counts[rank], recv, counts, displs, kType, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
    EXPECT_EQ(recv[1] + 10 * recv[2], 32.0F);
    const size_t none[3] = {0, 0, 0};
    EXPECT_TRUE(succeeded(trestleAllToAllV(nullptr, none, nullptr, nullptr, none, nullptr, kType, comm, nullptr)));
    EXPECT_TRUE(succeeded(trestleAllGatherV(nullptr, 0, nullptr, none, nullptr, kType, comm, nullptr)));
    EXPECT_TRUE(succeeded(trestleReduceScatterV(nullptr, nullptr, none, kType, trestleSum, comm, nullptr)));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
  });
}

}  // namespace
}  // namespace api
