// The binding of ranks by `trestle run`: the ranks' cores, and cores of other jobs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/run/cores/binding.h"

namespace trestle {
namespace {

class Claims : public testing::Test {
 protected:
  // unique to this test on this machine
  const std::string prefix_ = "trestle-test-" + std::to_string(getpid()) + "-";
  CoreClaims mine_{prefix_};
  CoreClaims others_{prefix_};
  const std::vector<Core> cores_ = {{0, {0, 4}}, {0, {1, 5}}, {1, {2, 6}}, {1, {3, 7}}};
};

TEST_F(Claims, OfOneJobAreSeenByOthersUntilTheyEnd) {
  EXPECT_TRUE(others_.claim(3));
  EXPECT_FALSE(mine_.claim(3));
  EXPECT_TRUE(mine_.claim(13));
  others_.release_all();
  EXPECT_TRUE(mine_.claim(3));
}

TEST_F(Claims, RanksGetACoreEach) {
  for (const Bind bind : {Bind::kAuto, Bind::kCore}) {
    const Binding binding = bind_ranks(bind, 3, cores_, mine_);
    EXPECT_EQ(binding.places, (std::vector<Core>{cores_[0], cores_[1], cores_[2]}));
    EXPECT_EQ(binding.note, "");
    EXPECT_FALSE(others_.claim(0)) << "taken";
    EXPECT_TRUE(others_.claim(3)) << "not needed";
    mine_.release_all();
    others_.release_all();
  }
}

TEST_F(Claims, CoresOfOtherJobsAreLeftToThem) {
  EXPECT_TRUE(others_.claim(0));
  const Binding free = bind_ranks(Bind::kAuto, 2, cores_, mine_);
  EXPECT_EQ(free.places, (std::vector<Core>{cores_[1], cores_[2]}));
  mine_.release_all();
  const Binding crowded = bind_ranks(Bind::kAuto, 4, cores_, mine_);
  EXPECT_TRUE(crowded.places.empty());
  EXPECT_FALSE(crowded.asked);
  EXPECT_EQ(crowded.note, "other jobs are bound to 1 of 4 usable cores: not bound");
  EXPECT_TRUE(CoreClaims(prefix_).claim(1)) << "nothing is kept";
  const Binding asked = bind_ranks(Bind::kCore, 4, cores_, mine_);
  EXPECT_EQ(asked.places, (std::vector<Core>{cores_[1], cores_[2], cores_[3], cores_[0]}));
  EXPECT_TRUE(asked.asked);
  EXPECT_EQ(asked.note, "other jobs are bound to 1 of 4 usable cores: 1 rank of this one shares them");
}

TEST_F(Claims, MoreRanksThanCoresAreNotBound) {
  const Binding asked = bind_ranks(Bind::kCore, 5, cores_, mine_);
  EXPECT_TRUE(asked.places.empty());
  EXPECT_TRUE(asked.asked);
  EXPECT_EQ(asked.note, "5 ranks on 4 usable cores: not bound");
  EXPECT_FALSE(bind_ranks(Bind::kAuto, 5, cores_, mine_).asked);
  EXPECT_TRUE(bind_ranks(Bind::kNone, 2, cores_, mine_).places.empty());
}

TEST_F(Claims, SocketsGetConsecutiveRanksInProportion) {
  const std::vector<Core> uneven = {{0, {0}}, {0, {1}}, {0, {2}}, {1, {3}}};
  const Core large{0, {0, 1, 2}};
  const Core small{1, {3}};
  EXPECT_EQ(bind_ranks(Bind::kSocket, 4, uneven, mine_).places, (std::vector<Core>{large, large, large, small}));
  EXPECT_EQ(bind_ranks(Bind::kSocket, 8, uneven, mine_).places,
            (std::vector<Core>{large, large, large, large, large, large, small, small}));
  EXPECT_EQ(bind_ranks(Bind::kSocket, 1, uneven, mine_).places, (std::vector<Core>{large}));
  EXPECT_TRUE(others_.claim(0)) << "no core is for one rank alone";
}

TEST(BindNames, AreRead) {
  EXPECT_EQ(parse_bind("none").value(), Bind::kNone);
  EXPECT_EQ(parse_bind("core").value(), Bind::kCore);
  EXPECT_EQ(parse_bind("socket").value(), Bind::kSocket);
  EXPECT_EQ(parse_bind("numa").error().message, "'numa' is not none, core or socket");
}

}  // namespace
}  // namespace trestle
