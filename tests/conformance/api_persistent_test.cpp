// Persistent requests of every collective: planned once, then run many times, alone, several at once, in groups and on
// streams. Also the uses that are refused.
#include <gtest/gtest.h>

#include <memory>

#include "conformance/api_call.h"
#include "conformance/api_vector_call.h"
#include "support/ranks.h"

namespace api {
namespace api_persistent_test {
namespace {

using ranks::refused;
using ranks::succeeded;

constexpr int kRounds = 4;

// Waits in one of two ways.
void complete(trestleRequest_t request, bool by_test) {
  if (!by_test) {
    ASSERT_TRUE(succeeded(trestleRequestWait(request)));
    return;
  }
  int done = 0;
  ranks::wait_until([&] { return trestleRequestTest(request, &done) != trestleSuccess || done != 0; });
  ASSERT_EQ(done, 1);
}

template <class Run>
void run_again_and_again(Run& run, trestleComm_t comm, bool by_test) {
  trestleRequest_t request = nullptr;
  ASSERT_TRUE(succeeded(run.init(comm, nullptr, &request), comm));
  for (int round = 0; round < kRounds; ++round) {
    run.spoil();
    ASSERT_TRUE(succeeded(trestleRequestStart(request), comm));
    complete(request, by_test);
    ASSERT_EQ(run.verify(), "") << "round " << round;
  }
  ASSERT_TRUE(succeeded(trestleRequestFree(request)));
}

TEST(ApiPersistent, EveryCollectiveRunsAgainAndAgain) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    for (const int ranks : {1, 2, 5}) {
      const ranks::Settings settings{.ranks = ranks, .transport = transport};
      ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
        uint64_t seed = 40;
        for (const trestleCollective_t collective : kEvenCollectives) {
          for (const size_t count : {size_t{0}, size_t{3}, size_t{5000}}) {
            const Call call{.collective = collective, .count = count, .root = ranks / 2, .seed = ++seed};
            SCOPED_TRACE(call);
            Execution run(call, rank, ranks);
            run_again_and_again(run, comm, seed % 2 == 0);
            if (testing::Test::HasFailure()) return;
          }
        }
        for (const trestleCollective_t collective : kUnevenCollectives) {
          for (const Counts counts : {Counts::kRandom, Counts::kManyZeros, Counts::kNone}) {
            const VectorCall call{.collective = collective,
                                  .counts = counts,
                                  .displacements = Displacements::kPermuted,
                                  .most = 2000,
                                  .root = ranks / 2,
                                  .seed = ++seed};
            SCOPED_TRACE(testing::Message() << call);
            VectorExecution run(call, rank, ranks);
            run_again_and_again(run, comm, seed % 2 == 0);
            if (testing::Test::HasFailure()) return;
          }
        }
      });
    }
  }
}

// Many requests in flight, started one by one and in a group, with other calls in between.
TEST(ApiPersistent, ManyAtOnce) {
  for (const bool grouped : {false, true}) {
    const ranks::Settings settings{.ranks = 4, .transport = "shm"};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      trestleStream_t stream = nullptr;
      ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
      std::vector<std::unique_ptr<VectorExecution>> runs;
      std::vector<trestleRequest_t> requests;
      for (uint64_t i = 0; i < 10; ++i) {
        const VectorCall call{.collective = kUnevenCollectives[i % 5], .most = 30'000, .root = 1, .seed = 70 + i};
        runs.push_back(std::make_unique<VectorExecution>(call, rank, settings.ranks));
        ASSERT_TRUE(succeeded(runs.back()->init(comm, i % 2 == 0 ? stream : nullptr, &requests.emplace_back()), comm));
      }
      trestleRequest_t barrier = nullptr;
      ASSERT_TRUE(succeeded(trestleBarrierInit(comm, nullptr, &barrier), comm));
      for (int round = 0; round < kRounds; ++round) {
        for (const auto& run : runs) run->spoil();
        if (grouped) {
          ASSERT_TRUE(succeeded(trestleGroupStart()));
        }
        for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestStart(request), comm));
        ASSERT_TRUE(succeeded(trestleRequestStart(barrier), comm));
        if (grouped) {
          int done = 0;
          EXPECT_TRUE(refused(trestleRequestTest(barrier, &done), trestleInvalidUsage, {"group"}));
          ASSERT_TRUE(succeeded(trestleGroupEnd(), comm));
        }
        run_and_verify(Call{.count = 100, .seed = 5}, rank, settings.ranks, comm);
        for (trestleRequest_t request : requests) ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
        ASSERT_TRUE(succeeded(trestleRequestWait(barrier), comm));
        for (const auto& run : runs) ASSERT_EQ(run->verify(), "") << "round " << round;
      }
      requests.push_back(barrier);
      for (trestleRequest_t request : requests) EXPECT_TRUE(succeeded(trestleRequestFree(request)));
      EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
    });
  }
}

TEST(ApiPersistent, WhatIsInFlightCanBeNeitherStartedNorFreed) {
  std::atomic<int> go{0};
  ranks::on_threads({.ranks = 2, .transport = "loopback"}, [&](int rank, trestleComm_t comm) {
    trestleRequest_t request = nullptr;
    ASSERT_TRUE(succeeded(trestleBarrierInit(comm, nullptr, &request)));
    int done = 0;
    EXPECT_TRUE(succeeded(trestleRequestTest(request, &done)));
    EXPECT_EQ(done, 1) << "it was never started";
    EXPECT_TRUE(refused(trestleAllReduceFinish(request, nullptr), trestleInvalidUsage, {"whole", "RequestStart"}));
    if (rank == 1) ranks::wait_until([&] { return go.load() != 0; });
    EXPECT_TRUE(succeeded(trestleRequestStart(request)));
    if (rank == 0) {
      EXPECT_TRUE(succeeded(trestleRequestTest(request, &done)));
      EXPECT_EQ(done, 0);
      EXPECT_TRUE(refused(trestleRequestStart(request), trestleInvalidUsage, {"started already"}));
      EXPECT_TRUE(refused(trestleRequestFree(request), trestleInvalidUsage, {"in flight"}));
      go.store(1);
    }
    EXPECT_TRUE(succeeded(trestleRequestWait(request)));
    EXPECT_TRUE(succeeded(trestleRequestFree(request)));
  });
}

TEST(ApiPersistent, AFinalizedCommunicatorMakesNoRequests) {
  ranks::on_threads({.ranks = 2, .name = "the ended"}, [](int rank, trestleComm_t comm) {
    ASSERT_TRUE(succeeded(trestleCommFinalize(comm), comm));
    const auto expect_refused = [&](auto&& init, auto collective) {
      trestleRequest_t request = nullptr;
      EXPECT_TRUE(refused(init(&request), trestleInvalidUsage, {"the ended", "finalized"})) << collective;
      EXPECT_EQ(request, nullptr) << collective;
    };
    for (const size_t count : {size_t{0}, size_t{3}}) {
      for (const trestleCollective_t collective : kEvenCollectives) {
        Execution run({.collective = collective, .count = count}, rank, 2);
        expect_refused([&](trestleRequest_t* request) { return run.init(comm, nullptr, request); }, collective);
      }
    }
    for (const trestleCollective_t collective : kUnevenCollectives) {
      VectorExecution run({.collective = collective, .most = 20}, rank, 2);
      expect_refused([&](trestleRequest_t* request) { return run.init(comm, nullptr, request); }, collective);
    }
    expect_refused([&](trestleRequest_t* request) { return trestleBarrierInit(comm, nullptr, request); }, "barrier");
  });
}

TEST(ApiPersistent, WrongArgumentsAreRefusedAtOnce) {
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t comm) {
    float x[4] = {};
    float y[4] = {};
    const size_t counts[2] = {1, 1};
    const size_t negative[2] = {1, static_cast<size_t>(-1)};
    const auto type = trestleFloat32;
    trestleRequest_t request = nullptr;
    EXPECT_TRUE(
        refused(trestleBarrierInit(comm, nullptr, nullptr), trestleInvalidArgument, {"BarrierInit", "request"}));
    EXPECT_TRUE(refused(trestleBarrierInit(nullptr, nullptr, &request), trestleInvalidArgument, {"comm"}));
    EXPECT_TRUE(refused(trestleAllGatherInit(nullptr, y, 1, type, comm, nullptr, &request), trestleInvalidArgument,
                        {"AllGatherInit", "send"}));
    EXPECT_TRUE(refused(trestleBroadcastInit(x, y, 1, type, 2, comm, nullptr, &request), trestleInvalidArgument,
                        {"BroadcastInit", "root"}));
    EXPECT_TRUE(refused(trestleReduceInit(x, y, SIZE_MAX / 2, type, trestleSum, 0, comm, nullptr, &request),
                        trestleInvalidArgument, {"ReduceInit", "count"}));
    EXPECT_TRUE(refused(trestleGatherInit(x, y, 1, type, -1, comm, nullptr, &request), trestleInvalidArgument,
                        {"GatherInit", "root"}));
    EXPECT_TRUE(
        refused(trestleReduceScatterInit(x, y, 1, type, static_cast<trestleRedOp_t>(9), comm, nullptr, &request),
                trestleInvalidArgument, {"ReduceScatterInit", "operator"}));
    EXPECT_TRUE(refused(trestleAllToAllVInit(x, counts, nullptr, y, negative, nullptr, type, comm, nullptr, &request),
                        trestleInvalidArgument, {"AllToAllVInit", "recvcounts[1] is -1"}));
    EXPECT_TRUE(refused(trestleAllGatherVInit(x, 2, y, counts, nullptr, type, comm, nullptr, &request),
                        trestleInvalidArgument, {"AllGatherVInit", "sendcount is 2"}));
    EXPECT_EQ(request, nullptr);
  });
}

}  // namespace
}  // namespace api_persistent_test
}  // namespace api
