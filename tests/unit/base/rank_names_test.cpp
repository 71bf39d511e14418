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

}  // namespace
}  // namespace trestle
