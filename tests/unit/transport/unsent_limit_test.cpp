// When a connection gets a limit, and how the limit follows the kernel's measure. Rates are in bytes per second.
#include "transport/tcp/unsent_limit.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

constexpr double kSlow = 25e6;  // 200 Mbit/s
constexpr uint64_t kSlowLimit = UnsentLimit::kHoldMs * 25'000;
constexpr uint64_t kMuch = 1'000'000;  // 40 ms of a slow connection

TEST(UnsentLimit, ASlowConnectionThatTookMuchGetsOne) {
  UnsentLimit limit;
  EXPECT_EQ(limit.change(0), 0u);
  limit.saw({kSlow, kMuch});
  EXPECT_EQ(limit.change(0), kSlowLimit);
  EXPECT_EQ(limit.change(0), 0u) << "once";
}

TEST(UnsentLimit, AFastConnectionGetsNone) {
  UnsentLimit limit;
  limit.saw({3e9, 4'000'000});
  EXPECT_EQ(limit.change(0), 0u);
  limit.saw({kSlow, 4'000'000});
  EXPECT_EQ(limit.change(0), 0u) << "one measure, of a moment at which the peer did not read";
  limit.saw({3e9, 0});
  EXPECT_EQ(limit.change(0), 0u);
}

TEST(UnsentLimit, WhatTheKernelCannotTellLimitsNothing) {
  UnsentLimit limit;
  limit.saw({});
  limit.saw({0, kMuch});
  EXPECT_EQ(limit.change(0), 0u);
}

TEST(UnsentLimit, FollowsARateThatRisesAtOnceAndOneThatFallsSlowly) {
  UnsentLimit limit;
  limit.saw({kSlow, kMuch});
  EXPECT_EQ(limit.change(0), kSlowLimit);
  limit.saw({10 * kSlow, kSlowLimit});
  EXPECT_EQ(limit.change(0), 10 * kSlowLimit);
  limit.saw({kSlow, kSlowLimit});
  EXPECT_EQ(limit.change(0), 0u) << "less than a quarter lower is not worth a system call";
  int looks = 1;
  uint64_t now = 10 * kSlowLimit;
  for (; now != kSlowLimit && looks < 100; ++looks) {
    limit.saw({kSlow, kSlowLimit});
    const uint64_t next = limit.change(0);
    if (next == 0) continue;
    EXPECT_LT(next, now);
    now = next;
    if (now < 4 * kSlowLimit / 3) break;
  }
  EXPECT_GT(looks, 5);
  EXPECT_LT(looks, 20);
}

TEST(UnsentLimit, TheMessageLayersGoesFirst) {
  UnsentLimit limit;
  limit.saw({kSlow, kMuch});
  EXPECT_EQ(limit.change(50'000), 50'000u);
  EXPECT_EQ(limit.change(55'000), 0u);
  EXPECT_EQ(limit.change(0), kSlowLimit) << "the other rails are gone";
}

TEST(UnsentLimit, TheKernelIsAskedNowAndThen) {
  UnsentLimit limit;
  EXPECT_FALSE(limit.wants_look());
  limit.wrote(UnsentLimit::kLookEveryBytes - 1);
  EXPECT_FALSE(limit.wants_look());
  limit.wrote(1);
  EXPECT_TRUE(limit.wants_look());
  limit.saw({});
  EXPECT_FALSE(limit.wants_look());
}

}  // namespace
}  // namespace trestle
