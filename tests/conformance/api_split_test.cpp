// Communicators made from others: the new ranks, in one process and across processes, and failures.
#include <gtest/gtest.h>
#include <trestle/trestle.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace api_split_test {
namespace {

// Sums a number over all ranks of the communicator.
int64_t sum(trestleComm_t comm, int64_t mine) {
  int64_t total = 0;
  EXPECT_TRUE(ranks::succeeded(trestleAllReduce(&mine, &total, 1, trestleInt64, trestleSum, comm, nullptr), comm));
  EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
  return total;
}

// The contributions of all ranks of a communicator, by rank.
std::vector<int64_t> gathered(trestleComm_t comm, int64_t mine, size_t elements = 1) {
  int count = 0;
  EXPECT_EQ(trestleCommCount(comm, &count), trestleSuccess);
  const std::vector<int64_t> sent(elements, mine);
  std::vector<int64_t> all(elements * static_cast<size_t>(count));
  EXPECT_TRUE(ranks::succeeded(trestleAllGather(sent.data(), all.data(), elements, trestleInt64, comm, nullptr), comm));
  EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
  std::vector<int64_t> firsts;
  for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
    EXPECT_EQ(all[r * elements], all[(r + 1) * elements - 1]);
    firsts.push_back(all[r * elements]);
  }
  return firsts;
}

trestleComm_t split(trestleComm_t comm, int color, int key) {
  trestleComm_t made = nullptr;
  EXPECT_TRUE(ranks::succeeded(trestleCommSplit(comm, color, key, &made, nullptr), comm));
  return made;
}

// Splits into ranks 0, 2, 4.. with falling keys and 1, 3, 5.. with equal keys. Then the last rank leaves the first
// half.
void split_in_two(int rank, int ranks, trestleComm_t comm) {
  const int color = rank % 2;
  trestleComm_t half = split(comm, color, color == 0 ? -rank : 7);
  ASSERT_NE(half, nullptr);
  std::vector<int64_t> expected;
  for (int r = color; r < ranks; r += 2) {
    expected.insert(color == 0 ? expected.begin() : expected.end(), r);
  }
  EXPECT_EQ(gathered(half, rank), expected);
  EXPECT_EQ(gathered(half, rank, 40'000), expected) << "beyond small messages";
  int own = -1;
  ASSERT_EQ(trestleCommUserRank(half, &own), trestleSuccess);
  EXPECT_EQ(expected[static_cast<size_t>(own)], rank);
  EXPECT_EQ(sum(comm, 1), ranks) << "the parent goes on";

  const bool stays = own != static_cast<int>(expected.size()) - 1;
  trestleComm_t rest = split(half, stays ? 3 : TRESTLE_SPLIT_NOCOLOR, 0);
  EXPECT_EQ(rest != nullptr, stays);
  if (stays) {
    EXPECT_EQ(sum(rest, 1), static_cast<int64_t>(expected.size()) - 1);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(rest)));
  }
  EXPECT_EQ(sum(half, 1), static_cast<int64_t>(expected.size()));
  EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(half)));
  EXPECT_EQ(sum(comm, 2), 2 * ranks);
}

TEST(ApiSplit, RanksAreOrderedByKeyThenRankInOneProcess) {
  ranks::on_threads({.ranks = 5}, [](int rank, trestleComm_t comm) { split_in_two(rank, 5, comm); });
}

TEST(ApiSplit, RanksAreOrderedByKeyThenRankAcrossProcesses) {
  if (!ranks::proofs()) GTEST_SKIP() << "without libsodium ranks live in one process";
  const ranks::Settings settings{.ranks = 4, .dims = "2x2", .transport = "shm,tcp", .algo = "ring,hd"};
  ranks::on_processes(
      settings, [](ranks::Process& process, trestleComm_t comm) { split_in_two(process.rank, process.ranks, comm); });
}

TEST(ApiSplit, OneThreadSplitsAllItsRanksInAGroup) {
  ranks::isolated([] {
    trestleComm_t all[4] = {};
    trestleComm_t halves[4] = {};
    trestleComm_t pairs[4] = {};
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAll(all, 4, nullptr)));
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    for (int r = 0; r < 4; ++r) {
      ASSERT_TRUE(ranks::succeeded(trestleCommSplit(all[r], r / 2, r, &halves[r], nullptr)));
      ASSERT_TRUE(
          ranks::succeeded(trestleCommSplit(all[r], r == 3 ? TRESTLE_SPLIT_NOCOLOR : 9, -r, &pairs[r], nullptr)));
      EXPECT_EQ(halves[r], nullptr);
    }
    ASSERT_TRUE(ranks::succeeded(trestleGroupEnd()));
    EXPECT_EQ(pairs[3], nullptr);
    int count = 0;
    ASSERT_EQ(trestleCommCount(pairs[0], &count), trestleSuccess);
    EXPECT_EQ(count, 3);
    ASSERT_EQ(trestleCommCount(halves[3], &count), trestleSuccess);
    EXPECT_EQ(count, 2);
    for (trestleComm_t comm : all) EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess) << "before its children";
    int32_t values[2] = {1, 2};
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    for (int r = 0; r < 2; ++r)
      ASSERT_EQ(trestleAllReduce(&values[r], &values[r], 1, trestleInt32, trestleSum, halves[r], nullptr),
                trestleSuccess);
    ASSERT_EQ(trestleGroupEnd(), trestleSuccess);
    for (int r = 0; r < 2; ++r) ASSERT_EQ(trestleCommSynchronize(halves[r]), trestleSuccess);
    EXPECT_EQ(values[0], 3);
    for (trestleComm_t comm : halves) EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(trestleCommDestroy(pairs[r]), trestleSuccess);
  });
}

TEST(ApiSplit, AWrongColorOrConfigIsRefusedOnAllRanksAndTheParentGoesOn) {
  ranks::on_threads({.ranks = 3}, [](int rank, trestleComm_t comm) {
    trestleComm_t made = nullptr;
    EXPECT_TRUE(ranks::refused(trestleCommSplit(comm, rank == 1 ? -5 : 0, 0, &made, nullptr), trestleInvalidArgument,
                               {"rank 1", "-5", "TRESTLE_SPLIT_NOCOLOR"}));
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    if (rank == 2) config.dims = "2x";
    EXPECT_TRUE(ranks::refused(trestleCommSplit(comm, 0, 0, &made, &config),
                               rank == 2 ? trestleInvalidArgument : trestleRemoteError,
                               rank == 2 ? std::vector<std::string>{"2x"} : std::vector<std::string>{"rank 2", "2x"}));
    EXPECT_EQ(made, nullptr);
    EXPECT_TRUE(ranks::refused(trestleCommSplit(comm, 0, 0, nullptr, nullptr), trestleInvalidArgument, {"newcomm"}));
    EXPECT_EQ(sum(comm, 1), 3);
    made = split(comm, 0, 0);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(sum(made, 1), 3);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(made)));
  });
}

// Only one rank makes groups that are refused. The following calls have numbers that all ranks must count alike.
TEST(ApiSplit, ARefusedGroupTakesNoNumber) {
  for (const char* check : {"0", "1"}) {
    const auto body = [](int rank, trestleComm_t comm) {
      trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
      for (const int blocking : {1, 0}) {
        config.blocking = blocking;
        if (rank != 0) break;
        float x = 0;
        trestleComm_t made = nullptr;
        trestleComm_t none = nullptr;
        ASSERT_TRUE(ranks::succeeded(trestleGroupStart()));
        EXPECT_TRUE(ranks::succeeded(trestleCommSplit(comm, 0, 0, &made, &config), comm));
        EXPECT_TRUE(ranks::succeeded(trestleCommSplit(comm, TRESTLE_SPLIT_NOCOLOR, 0, &none, &config), comm));
        EXPECT_TRUE(
            ranks::refused(trestleAllReduce(&x, &x, 1, static_cast<trestleDataType_t>(99), trestleSum, comm, nullptr),
                           trestleInvalidArgument, {"99"}));
        EXPECT_TRUE(ranks::refused(trestleGroupEnd(), trestleInvalidArgument, {"99"}));
        EXPECT_EQ(made, nullptr);
      }
      trestleComm_t made = split(comm, 0, -rank);
      ASSERT_NE(made, nullptr);
      EXPECT_EQ(gathered(made, rank), (std::vector<int64_t>{1, 0}));
      EXPECT_EQ(sum(comm, 1), 2);
      EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(made)));
    };
    ranks::on_threads({.ranks = 2}, body, {{"TRESTLE_CHECK", check}});
  }
}

TEST(ApiSplit, TheConfigHoldsForTheNewCommunicator) {
  ranks::on_threads({.ranks = 4, .dims = "2x2", .name = "parent"}, [](int, trestleComm_t comm) {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.dims = "2x2";
    config.algo = "ring,ring";
    config.commName = "the child";
    trestleComm_t made = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommSplit(comm, 1, 0, &made, &config), comm));
    EXPECT_EQ(sum(made, 1), 4);
    ASSERT_TRUE(ranks::succeeded(trestleCommFinalize(made), made));
    float value = 0;
    EXPECT_TRUE(ranks::refused(trestleAllReduce(&value, &value, 1, trestleFloat32, trestleSum, made, nullptr),
                               trestleInvalidUsage, {"the child"}));
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(made)));
  });
}

// The last part may arrive while its waiter begins to sleep, and sleepers must be woken. If only timeouts woke them,
// this would take minutes.
TEST(ApiSplit, ManySplitsWithoutColorBetweenSleepers) {
  if (!ranks::proofs()) GTEST_SKIP() << "without libsodium ranks live in one process";
  const auto body = [](ranks::Process&, trestleComm_t comm) {
    for (int i = 0; i < 2000; ++i) {
      trestleComm_t none = nullptr;
      ASSERT_TRUE(ranks::succeeded(trestleCommSplit(comm, TRESTLE_SPLIT_NOCOLOR, 0, &none, nullptr), comm));
    }
  };
  ranks::on_processes({.ranks = 4}, body, [](int) { return ranks::Env{{"TRESTLE_SPIN", "0"}}; });
}

TEST(ApiSplit, ARankThatDiesInsteadIsNamed) {
  if (!ranks::proofs()) GTEST_SKIP() << "without libsodium ranks live in one process";
  ranks::Job job{.ranks = 3};
  job.body = [](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(ranks::join(process, {.ranks = 3}, &comm)));
    EXPECT_EQ(sum(comm, 1), 3);
    ranks::meet(process.board, 3);  // a rank that is done may not be the last one
    if (process.rank == 1) ::_exit(7);
    trestleComm_t made = nullptr;
    EXPECT_TRUE(ranks::refused(trestleCommSplit(comm, 0, 0, &made, nullptr), trestleRemoteError, {"rank 1"}, comm));
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(trestleCommAbort(comm), trestleSuccess);
  };
  ranks::expect_ended_well(ranks::run(job), {1});
}

TEST(ApiSplit, ARankThatDoesNotCallInTimeIsNamed) {
  const int64_t timeout_ms = ranks::patient_ms(2, 200);  // the communicator must be made by then
  ranks::isolated([timeout_ms] {
    trestleComm_t all[2] = {};
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.timeoutMs = timeout_ms;
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAllConfig(all, 2, &config)));
    trestleComm_t made = nullptr;
    EXPECT_TRUE(ranks::refused(trestleCommSplit(all[0], 0, 0, &made, nullptr), trestleTimeout,
                               {"rank 1", "has not called CommSplit"}, all[0]));
    for (trestleComm_t comm : all) EXPECT_EQ(trestleCommAbort(comm), trestleSuccess);
  });
}

}  // namespace
}  // namespace api_split_test
}  // namespace api
