// One thread that holds several ranks makes, finalizes and destroys them. A failure leaves nothing behind.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/no_threads.h"
#include "support/ranks.h"

namespace api {
namespace api_group_life_test {
namespace {

using ranks::refused;
using ranks::succeeded;

const char* const kTransports[] = {"loopback", "shm", "tcp"};
constexpr size_t kCount = 50'021;

// All ranks of a communicator, driven by this thread, with an all-reduce that no thread has waited for.
struct Held {
  std::vector<trestleComm_t> comms;
  std::vector<std::vector<float>> data;

  explicit Held(const ranks::Settings& settings) : comms(static_cast<size_t>(settings.ranks)) {
    const trestleConfig_t config = ranks::config_of(settings);
    EXPECT_TRUE(succeeded(trestleCommInitAllConfig(comms.data(), settings.ranks, &config)));
    for (size_t r = 0; r < comms.size(); ++r) data.emplace_back(kCount, static_cast<float>(r + 1));
  }
  void all_reduce() {
    for (size_t r = 0; r < comms.size(); ++r) {
      float* at = data[r].data();
      EXPECT_TRUE(succeeded(trestleAllReduce(at, at, kCount, trestleFloat32, trestleSum, comms[r], nullptr)));
    }
  }
  void expect_sums() const {
    const auto n = static_cast<float>(comms.size());
    for (const auto& values : data) EXPECT_EQ(values, std::vector<float>(kCount, n * (n + 1) / 2));
  }
};

TEST(ApiGroupLife, OneThreadFinalizesAllRanks) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 4, .transport = transport, .timeout_ms = 20'000};
    ranks::isolated([&] {
      Held held(settings);
      held.all_reduce();
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      for (trestleComm_t comm : held.comms) EXPECT_TRUE(succeeded(trestleCommFinalize(comm)));
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
      held.expect_sums();
      EXPECT_TRUE(refused(trestleBarrier(held.comms[0], nullptr), trestleInvalidUsage, {"finalized"}));
      EXPECT_TRUE(refused(trestleCommFinalize(held.comms[0]), trestleInvalidUsage, {"finalized"}));
      for (trestleComm_t comm : held.comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

TEST(ApiGroupLife, CallsFinalizeAndDestroyInOneGroup) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 3, .transport = transport, .timeout_ms = 20'000};
    ranks::isolated([&] {
      Held held(settings);
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      held.all_reduce();
      for (trestleComm_t comm : held.comms) EXPECT_TRUE(succeeded(trestleCommFinalize(comm)));
      for (trestleComm_t comm : held.comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
      held.expect_sums();
      EXPECT_TRUE(refused(trestleBarrier(held.comms[0], nullptr), trestleInvalidUsage, {"destroyed"}));
    });
  }
}

TEST(ApiGroupLife, NoCallFollowsAFinalizeOfItsGroup) {
  ranks::isolated([] {
    Held held({.ranks = 2, .timeout_ms = 20'000});
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (trestleComm_t comm : held.comms) EXPECT_TRUE(succeeded(trestleCommFinalize(comm)));
    EXPECT_TRUE(refused(trestleBarrier(held.comms[1], nullptr), trestleInvalidUsage, {"finalized"}));
    EXPECT_TRUE(refused(trestleCommFinalize(held.comms[1]), trestleInvalidUsage, {"finalized"}));
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidUsage, {"finalized"}));
    held.all_reduce();  // the whole group was refused
    for (trestleComm_t comm : held.comms) EXPECT_TRUE(succeeded(trestleCommSynchronize(comm)));
    held.expect_sums();
    for (trestleComm_t comm : held.comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

TEST(ApiGroupLife, ALoneFinalizeIsBoundedAndSaysForWhomItWaited) {
  const ranks::Settings settings = ranks::patient({.ranks = 2, .timeout_ms = 3000});
  ranks::isolated([&] {
    Held held(settings);
    EXPECT_TRUE(refused(trestleCommFinalize(held.comms[0]), trestleTimeout, {"CommFinalize", "rank 1"}));
    for (trestleComm_t comm : held.comms) EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
  });
}

// Without a synchronize: each destroy finds work that needs ranks which the same thread destroys later.
TEST(ApiGroupLife, OneThreadDestroysRankAfterRank) {
  for (const char* transport : kTransports) {
    for (const bool backwards : {false, true}) {
      const ranks::Settings settings{.ranks = 4, .transport = transport, .timeout_ms = 20'000};
      ranks::isolated([&] {
        Held held(settings);
        held.all_reduce();
        std::vector<trestleComm_t> order = held.comms;
        if (backwards) order.assign(held.comms.rbegin(), held.comms.rend());
        for (trestleComm_t comm : order) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
        held.expect_sums();
      });
    }
  }
}

// Two ranks join correctly in the same group as one that cannot. No rank gets a communicator, and the next group works.
TEST(ApiGroupLife, OneFailedCreationLeavesNone) {
  ranks::isolated([] {
    const ranks::Settings settings{.ranks = 2, .timeout_ms = 20'000};
    const trestleConfig_t config = config_of(settings);
    const auto join_with = [&](const char bad_byte, std::array<trestleComm_t, 3>& comms) {
      trestleUniqueId id, bad;
      EXPECT_TRUE(succeeded(trestleGetUniqueId(&id)));
      for (char& c : bad.internal) c = bad_byte;
      EXPECT_TRUE(succeeded(trestleGroupStart()));
      for (int r = 0; r < 2; ++r) {
        EXPECT_TRUE(succeeded(trestleCommInitRankConfig(&comms[static_cast<size_t>(r)], 2, id, r, &config)));
        EXPECT_EQ(comms[static_cast<size_t>(r)], nullptr);
      }
      if (bad_byte != 0) {
        EXPECT_TRUE(succeeded(trestleCommInitRankConfig(&comms[2], 2, bad, 0, &config)));
      }
      return trestleGroupEnd();
    };
    std::array<trestleComm_t, 3> comms;
    comms.fill(reinterpret_cast<trestleComm_t>(&comms));  // anything but NULL
    EXPECT_TRUE(refused(join_with('x', comms), trestleInvalidArgument, {"id"}));
    for (trestleComm_t comm : comms) EXPECT_EQ(comm, nullptr);
    EXPECT_TRUE(succeeded(join_with(0, comms)));
    for (int r = 0; r < 2; ++r) EXPECT_TRUE(succeeded(trestleCommDestroy(comms[static_cast<size_t>(r)])));
  });
}

TEST(ApiGroupLife, ARefusedCreationRefusesTheGroup) {
  ranks::isolated([] {
    trestleUniqueId id;
    ASSERT_TRUE(succeeded(trestleGetUniqueId(&id)));
    trestleComm_t comms[2];
    for (trestleComm_t& comm : comms) comm = reinterpret_cast<trestleComm_t>(&comms);
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(succeeded(trestleCommInitRank(&comms[0], 2, id, 0)));
    EXPECT_TRUE(refused(trestleCommInitRank(&comms[1], 2, id, 2), trestleInvalidArgument, {"rank 2"}));
    // Rank 0 does not wait for rank 1, which never joins.
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidArgument, {"rank 2"}));
    for (trestleComm_t comm : comms) EXPECT_EQ(comm, nullptr);
  });
}

// The planning of the call finds the error.
TEST(ApiGroupLife, ACallThatCannotBePlannedLeavesNoCommunicator) {
  ranks::isolated([] {
    trestleComm_t old = nullptr;
    ASSERT_TRUE(succeeded(trestleCommInitAll(&old, 1, nullptr)));
    trestleCallConfig_t wrong = TRESTLE_CALL_CONFIG_INITIALIZER;
    wrong.algo = "nosuch";
    for (const int blocking : {1, 0}) {
      trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
      config.blocking = blocking;
      trestleUniqueId id;
      ASSERT_TRUE(succeeded(trestleGetUniqueId(&id)));
      trestleComm_t made = nullptr;
      std::vector<float> x(100'000), y(x.size());
      ASSERT_TRUE(succeeded(trestleCallConfigPush(&wrong)));
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      EXPECT_TRUE(succeeded(trestleCommInitRankConfig(&made, 1, id, 0, &config)));
      EXPECT_TRUE(succeeded(trestleAllReduce(x.data(), y.data(), x.size(), trestleFloat32, trestleSum, old, nullptr)));
      EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidArgument, {"nosuch"}));
      EXPECT_EQ(made, nullptr);
      ASSERT_TRUE(succeeded(trestleCallConfigPop()));
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(old)));
  });
}

TEST(ApiGroupLife, ThreadsThatCannotStartAreAnError) {
  ranks::isolated([] {
    trestleComm_t comms[3] = {};
    trestleUniqueId id;
    {
      trestle::NoThreads none;
      EXPECT_TRUE(refused(trestleGetUniqueId(&id), trestleSystemError, {"thread"}));
      EXPECT_TRUE(refused(trestleCommInitAll(comms, 3, nullptr), trestleSystemError, {"thread"}));
      EXPECT_TRUE(refused(trestleCommInitAll(comms, 1, nullptr), trestleSystemError, {"thread"})) << "the helper";
    }
    ASSERT_TRUE(succeeded(trestleGetUniqueId(&id)));
    const auto join_all = [&] {
      EXPECT_TRUE(succeeded(trestleGroupStart()));
      for (int r = 0; r < 3; ++r) EXPECT_TRUE(succeeded(trestleCommInitRank(&comms[r], 3, id, r)));
      return trestleGroupEnd();
    };
    {
      trestle::NoThreads none;
      EXPECT_TRUE(refused(join_all(), trestleSystemError, {"thread"}));
      for (trestleComm_t comm : comms) EXPECT_EQ(comm, nullptr);
    }
    ASSERT_TRUE(succeeded(join_all()));  // the id is still unused
    for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace api_group_life_test
}  // namespace api
