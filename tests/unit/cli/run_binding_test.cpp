// The binding of ranks by `trestle run`: the ranks' cores, and cores of other jobs.
#include "cli/run/binding.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace trestle {
namespace {

const std::vector<Core> kCores = {{0, {0, 4}}, {0, {1, 5}}, {1, {2, 6}}, {1, {3, 7}}};

Binding bound(Bind bind, size_t ranks, const std::vector<Core>& cores = kCores) {
  return bind_ranks(bind, ranks, cores, "trestle-test-" + std::to_string(getpid()) + "-");
}

TEST(RunBindingTest, RanksGetACoreEachThatNoOtherJobHas) {
  for (const Bind bind : {Bind::kAuto, Bind::kCore}) {
    const Binding first = bound(bind, 1);
    EXPECT_EQ(first.places, (std::vector<Core>{kCores[0]}));
    const Binding second = bound(bind, 3);
    EXPECT_EQ(second.places, (std::vector<Core>{kCores[1], kCores[2], kCores[3]}));
    EXPECT_EQ(second.note, "");
  }
}

TEST(RunBindingTest, CoresOfOtherJobsAreSharedOnlyWhenAsked) {
  const Binding first = bound(Bind::kAuto, 1);
  const Binding crowded = bound(Bind::kAuto, 4);
  EXPECT_TRUE(crowded.places.empty());
  EXPECT_EQ(crowded.note, "ranks: 4, usable cores: 4, taken by other jobs: 1; not bound");
  const Binding asked = bound(Bind::kCore, 4);
  EXPECT_EQ(asked.places, (std::vector<Core>{kCores[1], kCores[2], kCores[3], kCores[0]})) << "nothing was kept";
  EXPECT_EQ(asked.note, "ranks: 4, usable cores: 4, taken by other jobs: 1; 1 shared");
}

TEST(RunBindingTest, MoreRanksThanCoresAreNotBound) {
  for (const Bind bind : {Bind::kAuto, Bind::kCore}) {
    const Binding binding = bound(bind, 5);
    EXPECT_TRUE(binding.places.empty());
    EXPECT_EQ(binding.note, "ranks: 5, usable cores: 4; not bound");
  }
  EXPECT_TRUE(bound(Bind::kNone, 2).places.empty());
}

TEST(RunBindingTest, SocketsGetConsecutiveRanksInProportion) {
  const std::vector<Core> uneven = {{0, {0}}, {0, {1}}, {0, {2}}, {1, {3}}};
  const Core large{0, {0, 1, 2}};
  const Core small{1, {3}};
  const std::vector<std::pair<size_t, std::vector<Core>>> cases = {
      {1, {large}}, {4, {large, large, large, small}}, {8, {large, large, large, large, large, large, small, small}}};
  for (const auto& [ranks, places] : cases) {
    const Binding binding = bound(Bind::kSocket, ranks, uneven);
    EXPECT_EQ(binding.places, places);
    EXPECT_TRUE(binding.claims.empty()) << "no core is for one rank alone";
  }
}

}  // namespace
}  // namespace trestle
