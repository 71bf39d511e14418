// config.blocking = 0: calls that return trestleInProgress, calls that are allowed meanwhile, and an early end.
#include <gtest/gtest.h>
#include <trestle/trestle.h>

#include <atomic>
#include <string>
#include <thread>

#include "support/ranks.h"

namespace api {
namespace api_nonblocking_test {
namespace {

trestleConfig_t nonblocking(int64_t timeout_ms = -1) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.timeoutMs = timeout_ms;
  return config;
}

trestleResult_t state_of(trestleComm_t comm) {
  trestleResult_t state = trestleInternalError;
  EXPECT_EQ(trestleCommGetAsyncError(comm, &state), trestleSuccess);
  return state;
}

trestleResult_t end_of(trestleComm_t comm) {
  trestleResult_t state = trestleInProgress;
  ranks::wait_until([&] { return (state = state_of(comm)) != trestleInProgress; });
  return state;
}

trestleResult_t all_reduce_one(trestleComm_t comm, int32_t& value) {
  return trestleAllReduce(&value, &value, 1, trestleInt32, trestleSum, comm, nullptr);
}

// Begins to join as `rank` of two. This process has made the id.
trestleComm_t join(const trestleUniqueId& id, int rank, int64_t timeout_ms = -1) {
  const trestleConfig_t config = nonblocking(timeout_ms);
  trestleComm_t comm = nullptr;
  EXPECT_EQ(trestleCommInitRankConfig(&comm, 2, id, rank, &config), trestleInProgress) << trestleGetLastError(nullptr);
  EXPECT_NE(comm, nullptr);
  return comm;
}

TEST(ApiNonblocking, OneThreadJoinsUsesAndFinalizesTwoRanksWithoutAGroup) {
  if (!ranks::proofs()) GTEST_SKIP() << "without libsodium no id can be made";
  ranks::isolated([] {
    trestleUniqueId id;
    ASSERT_TRUE(ranks::succeeded(trestleGetUniqueId(&id)));
    trestleComm_t comms[2] = {join(id, 0), nullptr};
    EXPECT_EQ(state_of(comms[0]), trestleInProgress);
    int32_t value = 1;
    int count = 0;
    EXPECT_TRUE(ranks::refused(all_reduce_one(comms[0], value), trestleInvalidUsage, {"AllReduce", "in progress"}));
    EXPECT_TRUE(ranks::refused(trestleCommCount(comms[0], &count), trestleInvalidUsage, {"in progress"}));
    EXPECT_TRUE(ranks::refused(trestleCommFinalize(comms[0]), trestleInvalidUsage, {"in progress"}));
    trestleComm_t child = nullptr;
    EXPECT_TRUE(
        ranks::refused(trestleCommSplit(comms[0], 0, 0, &child, nullptr), trestleInvalidUsage, {"in progress"}));
    comms[1] = join(id, 1);
    for (trestleComm_t comm : comms) ASSERT_EQ(end_of(comm), trestleSuccess) << trestleGetLastError(comm);
    int32_t values[2] = {1, 2};
    for (int r = 0; r < 2; ++r) ASSERT_TRUE(ranks::succeeded(all_reduce_one(comms[r], values[r])));
    for (trestleComm_t comm : comms) ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(values[0] + values[1], 6);
    ASSERT_EQ(trestleCommFinalize(comms[0]), trestleInProgress);
    EXPECT_EQ(state_of(comms[0]), trestleInProgress);
    EXPECT_TRUE(ranks::refused(all_reduce_one(comms[0], value), trestleInvalidUsage, {"in progress"}));
    ASSERT_EQ(trestleCommFinalize(comms[1]), trestleInProgress);
    for (trestleComm_t comm : comms) ASSERT_EQ(end_of(comm), trestleSuccess) << trestleGetLastError(comm);
    EXPECT_TRUE(ranks::refused(all_reduce_one(comms[0], value), trestleInvalidUsage, {"finalized"}));
    for (trestleComm_t comm : comms) EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  });
}

TEST(ApiNonblocking, AcrossProcesses) {
  if (!ranks::proofs()) GTEST_SKIP() << "without libsodium ranks live in one process";
  ranks::Job job{.ranks = 3};
  job.body = [](ranks::Process& process) {
    if (process.rank == 0) {
      ASSERT_TRUE(ranks::succeeded(trestleGetUniqueId(&process.board.id)));
    }
    ranks::meet(process.board, 3);
    const trestleConfig_t config = nonblocking();
    trestleComm_t comm = nullptr;
    ASSERT_EQ(trestleCommInitRankConfig(&comm, 3, process.board.id, process.rank, &config), trestleInProgress);
    ASSERT_EQ(end_of(comm), trestleSuccess) << trestleGetLastError(comm);
    trestleComm_t pair = nullptr;
    const int color = process.rank == 1 ? TRESTLE_SPLIT_NOCOLOR : 4;
    ASSERT_EQ(trestleCommSplit(comm, color, 0, &pair, nullptr), trestleInProgress);
    int32_t value = 1;
    ASSERT_TRUE(ranks::succeeded(all_reduce_one(comm, value))) << "the parent takes calls all the while";
    ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(value, 3);
    ASSERT_EQ(pair == nullptr, process.rank == 1);
    ASSERT_EQ(end_of(pair == nullptr ? comm : pair), trestleSuccess);
    if (pair != nullptr) {
      ASSERT_TRUE(ranks::succeeded(all_reduce_one(pair, value)));
      ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(pair), pair));
      EXPECT_EQ(value, 6);
      ASSERT_TRUE(ranks::succeeded(trestleCommDestroy(pair)));
    }
    ASSERT_EQ(trestleCommFinalize(comm), trestleInProgress);
    ASSERT_EQ(end_of(comm), trestleSuccess);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  };
  ranks::expect_ended_well(ranks::run(job));
}

TEST(ApiNonblocking, AbortAndDestroyEndWhatIsInProgress) {
  if (!ranks::proofs()) GTEST_SKIP() << "without libsodium no id can be made";
  ranks::isolated([] {
    trestleUniqueId id;
    ASSERT_TRUE(ranks::succeeded(trestleGetUniqueId(&id)));
    EXPECT_TRUE(ranks::succeeded(trestleCommAbort(join(id, 0)))) << "rank 1 never comes";
    ASSERT_TRUE(ranks::succeeded(trestleGetUniqueId(&id)));
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(join(id, 0))));
    trestleComm_t comms[2] = {};
    const trestleConfig_t config = nonblocking();
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAllConfig(comms, 2, &config)));
    trestleComm_t child = nullptr;
    ASSERT_EQ(trestleCommSplit(comms[0], 0, 0, &child, nullptr), trestleInProgress);
    EXPECT_TRUE(ranks::succeeded(trestleCommAbort(child))) << "rank 1 never calls";
    trestleComm_t none = nullptr;
    ASSERT_EQ(trestleCommSplit(comms[0], TRESTLE_SPLIT_NOCOLOR, 0, &none, nullptr), trestleInProgress);
    EXPECT_EQ(state_of(comms[0]), trestleInProgress);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comms[0])));
    ASSERT_EQ(trestleCommFinalize(comms[1]), trestleInProgress);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comms[1]))) << "rank 0 never finalized";
  });
}

// Abort and Finalize may run in either order. Afterwards the handle is invalid, and the communicator has ended once.
TEST(ApiNonblocking, AbortMayMeetTheBeginningOfFinalize) {
  ranks::isolated([] {
    const trestleConfig_t config = nonblocking();
    for (uint64_t round = 0; round < 400; ++round) {
      trestleComm_t comm = nullptr;
      ASSERT_TRUE(ranks::succeeded(trestleCommInitAllConfig(&comm, 1, &config)));
      std::atomic<bool> begun{false};
      std::thread finalizes([&] {
        begun = true;
        trestleCommFinalize(comm);  // may also be refused
      });
      ranks::wait_until([&] { return begun.load(); });
      ranks::spin(round % 100 * 100);
      EXPECT_TRUE(ranks::succeeded(trestleCommAbort(comm)));
      finalizes.join();
      int count = 0;
      ASSERT_TRUE(ranks::refused(trestleCommCount(comm, &count), trestleInvalidUsage, {"destroyed"}));
    }
  });
}

TEST(ApiNonblocking, AFailureIsToldByTheStateAndByEveryCall) {
  if (!ranks::proofs()) GTEST_SKIP() << "without libsodium no id can be made";
  ranks::isolated([] {
    trestleUniqueId id;
    ASSERT_TRUE(ranks::succeeded(trestleGetUniqueId(&id)));
    trestleComm_t comm = join(id, 0, 100);
    EXPECT_EQ(end_of(comm), trestleTimeout);
    EXPECT_TRUE(ranks::contains(trestleGetLastError(comm), "1")) << trestleGetLastError(comm);
    int32_t value = 0;
    EXPECT_EQ(all_reduce_one(comm, value), trestleTimeout);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));

    trestleConfig_t config = nonblocking();
    config.blocking = 2;
    comm = nullptr;
    EXPECT_TRUE(
        ranks::refused(trestleCommInitRankConfig(&comm, 2, id, 0, &config), trestleInvalidArgument, {"blocking", "2"}));
    EXPECT_EQ(comm, nullptr);
  });
}

TEST(ApiNonblocking, GroupsBeginAndReturn) {
  if (!ranks::proofs()) GTEST_SKIP() << "without libsodium no id can be made";
  ranks::isolated([] {
    trestleUniqueId id;
    ASSERT_TRUE(ranks::succeeded(trestleGetUniqueId(&id)));
    const trestleConfig_t config = nonblocking();
    trestleComm_t comms[2] = {};
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    for (int r = 0; r < 2; ++r) {
      ASSERT_TRUE(ranks::succeeded(trestleCommInitRankConfig(&comms[r], 2, id, r, &config)));
      EXPECT_EQ(comms[r], nullptr);
    }
    ASSERT_EQ(trestleGroupEnd(), trestleInProgress);
    for (trestleComm_t comm : comms) ASSERT_EQ(end_of(comm), trestleSuccess);
    trestleComm_t children[2] = {};
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    for (int r = 0; r < 2; ++r) {
      EXPECT_TRUE(
          ranks::succeeded(trestleCommSplit(comms[r], r == 0 ? 1 : TRESTLE_SPLIT_NOCOLOR, 0, &children[r], nullptr)));
    }
    ASSERT_EQ(trestleGroupEnd(), trestleInProgress);
    ASSERT_NE(children[0], nullptr);
    EXPECT_EQ(end_of(children[0]), trestleSuccess);
    EXPECT_EQ(end_of(comms[1]), trestleSuccess);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(children[0])));
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    for (trestleComm_t comm : comms) ASSERT_TRUE(ranks::succeeded(trestleCommFinalize(comm)));
    ASSERT_EQ(trestleGroupEnd(), trestleInProgress);
    for (trestleComm_t comm : comms) ASSERT_EQ(end_of(comm), trestleSuccess);
    for (trestleComm_t comm : comms) EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    comms[0] = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommInitRankConfig(&comms[0], 2, id, 0, &config)));
    EXPECT_EQ(trestleCommCount(nullptr, nullptr), trestleInvalidArgument);
    EXPECT_EQ(trestleBarrier(nullptr, nullptr), trestleInvalidArgument);
    EXPECT_EQ(trestleGroupEnd(), trestleInvalidArgument);
    EXPECT_EQ(comms[0], nullptr) << "a refused group begins nothing";
  });
}

TEST(ApiNonblocking, ASplitOfWhatEndsInTheSameGroupIsRefused) {
  ranks::isolated([] {
    trestleConfig_t config = nonblocking();
    trestleComm_t comm = nullptr;
    trestleComm_t none = nullptr;
    trestleComm_t others[2] = {};
    trestleComm_t children[2] = {};
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAllConfig(&comm, 1, &config)));
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAll(others, 2, nullptr)));
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    EXPECT_TRUE(ranks::succeeded(trestleCommSplit(others[0], 0, 0, &children[0], &config)));
    EXPECT_TRUE(ranks::succeeded(trestleCommSplit(comm, TRESTLE_SPLIT_NOCOLOR, 0, &none, nullptr)));
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
    EXPECT_EQ(trestleGroupEnd(), trestleInvalidUsage);
    EXPECT_TRUE(ranks::contains(trestleGetLastError(nullptr), "has ended since")) << trestleGetLastError(nullptr);
    EXPECT_EQ(children[0], nullptr) << "a refused group begins nothing";
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    for (int r = 0; r < 2; ++r) {
      ASSERT_TRUE(ranks::succeeded(trestleCommSplit(others[r], 0, 0, &children[r], nullptr)));
    }
    EXPECT_TRUE(ranks::succeeded(trestleGroupEnd())) << "and takes no number of a split";
    for (trestleComm_t child : children) EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(child)));
    for (trestleComm_t other : others) EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(other)));
  });
}

}  // namespace
}  // namespace api_nonblocking_test
}  // namespace api
