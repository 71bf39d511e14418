// CommSplit: a missing place for the handle, its order among other calls, and the settings that the new communicator
// takes from the old one.
#include <gtest/gtest.h>

#include "support/no_threads.h"
#include "support/ranks.h"

namespace api {
namespace split_usage_test {
namespace {

using ranks::refused;
using ranks::succeeded;

int64_t sum(trestleComm_t comm, int64_t mine) {
  int64_t total = 0;
  EXPECT_TRUE(succeeded(trestleAllReduce(&mine, &total, 1, trestleInt64, trestleSum, comm, nullptr), comm));
  EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  return total;
}

trestleConfig_t with_blocking(int blocking) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.blocking = blocking;
  return config;
}

trestleResult_t end_of(trestleComm_t comm) {
  trestleResult_t state = trestleInProgress;
  ranks::wait_until([&] {
    EXPECT_EQ(trestleCommGetAsyncError(comm, &state), trestleSuccess);
    return state != trestleInProgress;
  });
  return state;
}

std::vector<std::string> facts_for(int rank) {
  if (rank == 2) return {"CommSplit: newcomm is NULL"};
  return {"CommSplit: rank 2", "passed newcomm NULL"};
}

TEST(ApiSplitUsage, NewcommNullOnOneRankIsRefusedOnAll) {
  ranks::on_threads({.ranks = 3, .timeout_ms = 300'000}, [](int rank, trestleComm_t comm) {
    trestleComm_t made = nullptr;
    trestleComm_t* const place = rank == 2 ? nullptr : &made;
    for (const int color : {0, TRESTLE_SPLIT_NOCOLOR}) {
      EXPECT_TRUE(refused(trestleCommSplit(comm, color, 0, place, nullptr), trestleInvalidArgument, facts_for(rank)));
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      EXPECT_TRUE(succeeded(trestleCommSplit(comm, color, 0, place, nullptr)));
      EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidArgument, facts_for(rank)));
      EXPECT_EQ(made, nullptr);
    }
    EXPECT_EQ(sum(comm, 1), 3) << "the parent goes on";
  });
}

TEST(ApiSplitUsage, NewcommNullOnOneRankIsRefusedOnAllWithoutBlocking) {
  ranks::on_threads({.ranks = 3, .timeout_ms = 300'000}, [](int rank, trestleComm_t comm) {
    const trestleConfig_t config = with_blocking(0);
    for (const bool grouped : {false, true}) {
      trestleComm_t made = nullptr;
      if (grouped) {
        ASSERT_TRUE(succeeded(trestleGroupStart()));
      }
      trestleResult_t result = trestleCommSplit(comm, 0, 0, rank == 2 ? nullptr : &made, &config);
      if (grouped) result = trestleGroupEnd();
      ASSERT_EQ(result, trestleInProgress);
      // A rank without a handle asks the parent.
      EXPECT_EQ(end_of(rank == 2 ? comm : made), trestleInvalidArgument);
      const std::string sentence = trestleGetLastError(rank == 2 ? nullptr : made);
      for (const std::string& fact : facts_for(rank)) EXPECT_TRUE(ranks::contains(sentence, fact)) << sentence;
      if (rank != 2) {
        EXPECT_TRUE(succeeded(trestleCommDestroy(made)));
      }
    }
    EXPECT_EQ(sum(comm, 1), 3) << "the parent goes on";
  });
}

// Rank 0 makes the same calls in a group. TRESTLE_CHECK finds them the same and in the same order.
TEST(ApiSplitUsage, CallsAreNumberedAlikeWithAndWithoutAGroup) {
  const auto body = [](ranks::Process& process, trestleComm_t comm) {
    const bool grouped = process.rank == 0;
    for (const size_t count : {size_t{2}, size_t{50'000}}) {
      std::vector<float> x(count, 1.0F), y(count, 1.0F), z(count, 1.0F);
      trestleComm_t first = nullptr;
      trestleComm_t second = nullptr;
      const auto reduce = [&](std::vector<float>& data, size_t elements) {
        EXPECT_TRUE(succeeded(
            trestleAllReduce(data.data(), data.data(), elements, trestleFloat32, trestleSum, comm, nullptr), comm));
      };
      if (grouped) {
        ASSERT_TRUE(succeeded(trestleGroupStart()));
      }
      reduce(x, count);
      reduce(x, 0);
      EXPECT_TRUE(succeeded(trestleCommSplit(comm, 0, 0, &first, nullptr), comm));
      reduce(y, count);
      EXPECT_TRUE(succeeded(trestleCommSplit(comm, 0, 0, &second, nullptr), comm));
      reduce(z, count);
      if (grouped) {
        ASSERT_TRUE(succeeded(trestleGroupEnd()));
      }
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      for (const auto& data : {x, y, z}) EXPECT_EQ(data, std::vector<float>(count, 2.0F));
      for (trestleComm_t made : {first, second}) {
        ASSERT_NE(made, nullptr);
        EXPECT_EQ(sum(made, 3), 6);
        EXPECT_TRUE(succeeded(trestleCommDestroy(made)));
      }
    }
    ASSERT_TRUE(succeeded(trestleCommFinalize(comm), comm));
  };
  for (const char* check : {"1", "0"}) {
    ranks::on_processes({.ranks = 2, .transport = "shm"}, body, [&](int) {
      return ranks::Env{{"TRESTLE_CHECK", check}};
    });
  }
}

// Another order is found, in a group or not.
TEST(ApiSplitUsage, AnotherOrderInAGroupIsFound) {
  const auto body = [](ranks::Process& process, trestleComm_t comm) {
    float x = 1;
    trestleComm_t made = nullptr;
    const auto reduce = [&] { trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr); };
    const auto split = [&] { trestleCommSplit(comm, 0, 0, &made, nullptr); };
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    process.rank == 0 ? split() : reduce();
    process.rank == 0 ? reduce() : split();
    trestleResult_t result = trestleGroupEnd();
    while (result == trestleSuccess) ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comm, &result)));
    EXPECT_EQ(result, trestleInvalidUsage);
    for (const char* fact : {"operation 0", "as CommSplit", "as allreduce"}) {
      EXPECT_TRUE(ranks::contains(trestleGetLastError(comm), fact)) << trestleGetLastError(comm);
    }
    if (made != nullptr) {
      EXPECT_TRUE(succeeded(trestleCommDestroy(made)));
    }
  };
  ranks::on_processes({.ranks = 2, .transport = "shm"}, body, [](int) { return ranks::Env{{"TRESTLE_CHECK", "1"}}; });
}

// Splits that only rank 0 makes. None may use up a number, because the other rank does not count it.
void split_in_vain(trestleComm_t comm) {
  const trestle::NoThreads none;
  const trestleConfig_t config = with_blocking(0);
  trestleComm_t made[3] = {};
  for (const int color : {0, TRESTLE_SPLIT_NOCOLOR}) {
    EXPECT_TRUE(refused(trestleCommSplit(comm, color, 0, &made[0], &config), trestleSystemError, {"thread"}));
  }
  for (const trestleConfig_t* how : {&config, static_cast<const trestleConfig_t*>(nullptr)}) {
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (const int i : {0, 1, 2}) {
      EXPECT_TRUE(succeeded(trestleCommSplit(comm, i == 2 ? TRESTLE_SPLIT_NOCOLOR : 0, 0, &made[i], how), comm));
    }
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleSystemError, {"thread"}));
  }
  for (trestleComm_t one : made) EXPECT_EQ(one, nullptr);
}

TEST(ApiSplitUsage, WithoutAThreadItTakesNoNumber) {
  for (const char* check : {"0", "1"}) {
    const auto body = [](ranks::Process& process, trestleComm_t comm) {
      if (process.rank == 0) split_in_vain(comm);
      trestleComm_t made = nullptr;
      ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, 0, &made, nullptr), comm));
      EXPECT_EQ(sum(made, 1), 2);
      EXPECT_EQ(sum(comm, 1), 2);
      EXPECT_TRUE(succeeded(trestleCommDestroy(made)));
      trestleResult_t state = trestleInternalError;
      EXPECT_EQ(trestleCommGetAsyncError(comm, &state), trestleSuccess);
      EXPECT_EQ(state, trestleSuccess) << "nothing of what was refused is left";
    };
    ranks::on_processes({.ranks = 2}, body, [&](int) { return ranks::Env{{"TRESTLE_CHECK", check}}; });
  }
}

TEST(ApiSplitUsage, BlocksAsItsParentUnlessItsConfigSaysOtherwise) {
  ranks::isolated([] {
    trestleComm_t parent = nullptr;
    trestleConfig_t config = with_blocking(0);
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(&parent, 1, &config)));
    const trestleConfig_t undefined = TRESTLE_CONFIG_INITIALIZER;
    const trestleConfig_t waits = with_blocking(1);
    const std::pair<const trestleConfig_t*, trestleResult_t> cases[] = {
        {nullptr, trestleInProgress}, {&undefined, trestleInProgress}, {&waits, trestleSuccess}};
    for (const auto& [how, expected] : cases) {
      trestleComm_t made = nullptr;
      EXPECT_EQ(trestleCommSplit(parent, 0, 0, &made, how), expected);
      ASSERT_NE(made, nullptr);
      EXPECT_EQ(end_of(made), trestleSuccess);
      EXPECT_EQ(trestleCommFinalize(made), expected) << "the new one has it from its parent, too";
      EXPECT_EQ(end_of(made), trestleSuccess);
      EXPECT_TRUE(succeeded(trestleCommDestroy(made)));
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(parent)));
  });
}

}  // namespace
}  // namespace split_usage_test
}  // namespace api
