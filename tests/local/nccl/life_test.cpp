// Communicators, groups and failures through NCCL's interface.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "local/nccl/nccl_ranks.h"
#include "support/ranks.h"

namespace {

using nccl_ranks::refused;
using nccl_ranks::succeeded;

ncclResult_t sum(int& value, ncclComm_t comm) {
  return ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, nullptr);
}

TEST(NcclLife, QueriesAnswerAsInNccl) {
  nccl_ranks::on_threads(3, [](int rank, ncclComm_t comm) {
    int number = -7;
    EXPECT_TRUE(succeeded(ncclCommCount(comm, &number)));
    EXPECT_EQ(number, 3);
    EXPECT_TRUE(succeeded(ncclCommUserRank(comm, &number)));
    EXPECT_EQ(number, rank);
    EXPECT_TRUE(succeeded(ncclCommCuDevice(comm, &number)));
    EXPECT_EQ(number, -1) << "the processor, as CUDA numbers it";
    ncclResult_t state = ncclInternalError;
    EXPECT_TRUE(succeeded(ncclCommGetAsyncError(comm, &state)));
    EXPECT_EQ(state, ncclSuccess);
  });
}

TEST(NcclLife, CodesHaveTexts) {
  ranks::isolated([] {
    int version = 0;
    EXPECT_TRUE(succeeded(ncclGetVersion(&version)));
    EXPECT_EQ(version, 23007);
    EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
    EXPECT_STREQ(ncclGetErrorString(static_cast<ncclResult_t>(8)), "timeout");
    EXPECT_STREQ(ncclGetErrorString(static_cast<ncclResult_t>(9)), "unknown result code");
    EXPECT_STREQ(ncclGetLastError(nullptr), "");
  });
}

// One thread makes all ranks in a group, as programs with a GPU per rank do.
TEST(NcclLife, OneThreadMakesAllRanksInAGroup) {
  ranks::isolated([] {
    constexpr int kRanks = 3;
    ncclComm_t comms[kRanks] = {};
    ncclUniqueId id;
    ASSERT_TRUE(succeeded(ncclGetUniqueId(&id)));
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(succeeded(ncclCommInitRank(&comms[rank], kRanks, id, rank)));
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    int values[kRanks] = {1, 10, 100};
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    ASSERT_TRUE(succeeded(ncclGroupStart()));  // groups nest
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_TRUE(succeeded(sum(values[rank], comms[rank])));
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    EXPECT_EQ(values[0], 1) << "the outer group has not ended";
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    for (const int value : values) EXPECT_EQ(value, 111);
    // A communicator may be destroyed in the group of its last call.
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(succeeded(sum(values[rank], comms[rank])));
      EXPECT_TRUE(succeeded(ncclCommDestroy(comms[rank])));
    }
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    for (const int value : values) EXPECT_EQ(value, 333);
  });
}

TEST(NcclLife, SeveralIdsAreAsGoodAsOne) {
  nccl_ranks::with_id(1, [](int, ncclUniqueId id) {
    constexpr int kRanks = 2;
    ncclUniqueId ids[kRanks] = {id, id};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        ncclComm_t comm = nullptr;
        ASSERT_TRUE(succeeded(ncclCommInitRankScalable(&comm, kRanks, rank, 2, ids, nullptr)));
        int value = 1 + rank;
        EXPECT_TRUE(succeeded(sum(value, comm)));
        EXPECT_EQ(value, 3);
        EXPECT_TRUE(succeeded(ncclCommFinalize(comm)));
        EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(NcclLife, Splits) {
  nccl_ranks::on_processes(4, [](int rank, ncclComm_t comm) {
    // Two of two ranks, the second one in reverse order.
    ncclComm_t half = nullptr;
    ASSERT_TRUE(succeeded(ncclCommSplit(comm, rank / 2, rank / 2 == 0 ? rank : -rank, &half, nullptr), comm));
    int number = -1;
    EXPECT_TRUE(succeeded(ncclCommUserRank(half, &number)));
    EXPECT_EQ(number, rank / 2 == 0 ? rank % 2 : 1 - rank % 2);
    int value = 1 << rank;
    EXPECT_TRUE(succeeded(sum(value, half), half));
    EXPECT_EQ(value, rank / 2 == 0 ? 3 : 12);
    EXPECT_TRUE(succeeded(ncclCommDestroy(half)));
    // One rank takes no part.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    config.splitShare = 1;
    ncclComm_t rest = comm;
    const int color = rank == 2 ? NCCL_SPLIT_NOCOLOR : 5;
    ASSERT_TRUE(succeeded(ncclCommSplit(comm, color, 0, &rest, &config), comm));
    EXPECT_EQ(rest == nullptr, rank == 2);
    if (rest != nullptr) {
      EXPECT_TRUE(succeeded(ncclCommCount(rest, &number)));
      EXPECT_EQ(number, 3);
      EXPECT_TRUE(succeeded(ncclCommDestroy(rest)));
    }
  });
}

TEST(NcclLife, WithoutBlockingTheCallerAsksUntilItIsDone) {
  nccl_ranks::with_id(2, [](int rank, ncclUniqueId id) {
    const auto settle = [](ncclComm_t comm) {
      ncclResult_t state = ncclInProgress;
      ranks::wait_until([&] { return ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclInProgress; });
      return state;
    };
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    const ncclResult_t begun = ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    EXPECT_TRUE(begun == ncclInProgress || begun == ncclSuccess) << begun;
    ASSERT_NE(comm, nullptr);
    ASSERT_EQ(settle(comm), ncclSuccess) << ncclGetLastError(comm);
    int value = 1 + rank;
    EXPECT_TRUE(succeeded(sum(value, comm), comm));
    EXPECT_EQ(value, 3);
    const ncclResult_t ending = ncclCommFinalize(comm);
    EXPECT_TRUE(ending == ncclInProgress || ending == ncclSuccess) << ending;
    EXPECT_EQ(settle(comm), ncclSuccess) << ncclGetLastError(comm);
    EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
  });
}

TEST(NcclLife, AnAbortReachesTheOthers) {
  nccl_ranks::with_id(2, [](int rank, ncclUniqueId id) {
    ncclComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ncclCommInitRank(&comm, 2, id, rank)));
    if (rank == 1) {
      EXPECT_TRUE(succeeded(ncclCommAbort(comm)));
      return;
    }
    int value = 1;
    EXPECT_TRUE(refused(sum(value, comm), ncclRemoteError, {"rank 1", "aborted"}, comm));
    ncclResult_t state = ncclSuccess;
    EXPECT_TRUE(succeeded(ncclCommGetAsyncError(comm, &state)));
    EXPECT_EQ(state, ncclRemoteError);
    EXPECT_TRUE(refused(sum(value, comm), ncclRemoteError, {"aborted"}, comm)) << "a failure stays";
    EXPECT_TRUE(succeeded(ncclCommAbort(comm)));
  });
}

// A thread waits in a call for a rank that never comes; another one ends that.
TEST(NcclLife, AnAbortEndsACallThatWaits) {
  ranks::isolated([] {
    ncclComm_t comms[2];
    ASSERT_TRUE(succeeded(ncclCommInitAll(comms, 2, nullptr)));
    std::thread waiting([&] {
      int value = 1;
      EXPECT_NE(sum(value, comms[0]), ncclSuccess);
    });
    EXPECT_TRUE(succeeded(ncclCommAbort(comms[0])));
    waiting.join();
    EXPECT_TRUE(succeeded(ncclCommAbort(comms[1])));
  });
}

TEST(NcclLife, ASimulatedGroupIsNotRun) {
  ranks::isolated([] {
    ncclComm_t comms[2];
    ASSERT_TRUE(succeeded(ncclCommInitAll(comms, 2, nullptr)));
    std::vector<float> data[2] = {std::vector<float>(100'000, 1.0F), std::vector<float>(100'000, 1.0F)};
    const auto add = [&] {
      ASSERT_TRUE(succeeded(ncclGroupStart()));
      for (int rank = 0; rank < 2; ++rank) {
        float* const at = data[rank].data();
        EXPECT_TRUE(succeeded(ncclAllReduce(at, at, data[rank].size(), ncclFloat, ncclSum, comms[rank], nullptr)));
      }
    };
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    add();
    ASSERT_TRUE(succeeded(ncclGroupSimulateEnd(&info)));
    EXPECT_GT(info.estimatedTime, 0.0F);
    EXPECT_EQ(data[0][0], 1.0F);
    EXPECT_STREQ(ncclGetLastError(nullptr), "");
    add();
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    EXPECT_EQ(data[0][99'999], 2.0F);
    EXPECT_EQ(data[1][0], 2.0F);

    add();
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    ASSERT_TRUE(succeeded(ncclGroupSimulateEnd(&info))) << "an inner group only ends";
    ASSERT_TRUE(succeeded(ncclGroupEnd()));
    EXPECT_EQ(data[0][0], 4.0F);

    info.magic = 1;
    add();
    EXPECT_TRUE(refused(ncclGroupSimulateEnd(&info), ncclInvalidArgument, {"NCCL_SIM_INFO_INITIALIZER"}));
    EXPECT_TRUE(refused(ncclGroupSimulateEnd(&info), ncclInvalidUsage, {"GroupStart"})) << "the group has ended";
    EXPECT_EQ(data[0][0], 4.0F);
    for (const ncclComm_t comm : comms) EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
  });
}

// A forked child is outside of the group that its parent's thread had open.
TEST(NcclLife, AChildBeginsOutsideOfGroups) {
  ranks::isolated([] {
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    const pid_t child = fork();
    if (child == 0) {
      ncclComm_t comm = nullptr;
      int value = 4;
      bool right = ncclCommInitAll(&comm, 1, nullptr) == ncclSuccess && ncclGroupStart() == ncclSuccess;
      right = right && sum(value, comm) == ncclSuccess && ncclGroupEnd() == ncclSuccess && value == 4;
      _exit(right ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_TRUE(succeeded(ncclGroupEnd()));
  });
}

}  // namespace
