#include "base/rank_names.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

const std::vector<std::string> kNames = {"rank 0 (host a, pid 7)", "rank 1 (host a, pid 8)", "rank 2 (host a, pid 8)",
                                         "rank 3 (host b, pid 7)"};

const std::string kOwn = "rank 4 (host c, pid 7)";

TEST(RankNames, TheProcessSaysWhichRankIsMeant) {
  EXPECT_EQ(in_numbers_of(kNames, kOwn, "rank 9 (host b, pid 7) died (why)"), "rank 3 (host b, pid 7) died (why)");
  EXPECT_EQ(in_numbers_of(kNames, kOwn, "rank 3 (host a, pid 7) died"), "rank 0 (host a, pid 7) died");
}

TEST(RankNames, OfSeveralInOneProcessTheNumberDecidesWhereItCan) {
  EXPECT_EQ(in_numbers_of(kNames, kOwn, "rank 2 (host a, pid 8) died"), "rank 2 (host a, pid 8) died");
  EXPECT_EQ(in_numbers_of(kNames, kOwn, "rank 5 (host a, pid 8) died"), "rank 1 (host a, pid 8) died");
}

TEST(RankNames, NobodyIsToldOfItselfWhatARankBesideItHasDone) {
  EXPECT_FALSE(in_numbers_of(kNames, kNames[0], "rank 9 (host a, pid 7) died").has_value());
}

TEST(RankNames, WhatIsNotKnownIsSaid) {
  for (const char* sentence : {"rank 1 (host c, pid 7) died", "rank 1 died", "rank 1 died (why)", "no rank", "",
                               "the process (host a, pid 7) died", "rank 1 (host a, pid 8"}) {
    EXPECT_FALSE(in_numbers_of(kNames, kOwn, sentence).has_value()) << sentence;
  }
}

// Several parts of a communicator of thousands of ranks keep them.
TEST(RankNames, CopiesShareOneList) {
  const RankNames names = kNames;
  const RankNames copy = names;
  RankNames assigned = {"rank 0"};
  assigned = copy;
  EXPECT_EQ(assigned.all(), kNames);
  EXPECT_EQ(&assigned.all(), &names.all());
  EXPECT_EQ(&assigned[2], &names[2]);
  EXPECT_EQ(assigned.size(), kNames.size());
  const RankNames changed = copy.with(1, "rank 1 (host d, pid 9)");
  EXPECT_EQ(changed[1], "rank 1 (host d, pid 9)");
  EXPECT_EQ(changed[2], kNames[2]);
  EXPECT_EQ(names.all(), kNames) << "the others keep theirs";
  EXPECT_EQ(RankNames().size(), 0u);
}

}  // namespace
}  // namespace trestle
