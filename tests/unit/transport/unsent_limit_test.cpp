// When a connection gets a limit, and how the limit follows the kernel's measure. Rates are in bytes per second.
#include "transport/tcp/unsent_limit.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

constexpr double kSlow = 25e6;               // 200 Mbit/s
constexpr uint64_t kSlowLimit = 4 * 25'000;  // 4 ms of it
constexpr uint64_t kMuch = 1'000'000;        // 40 ms of it

// A connection without a told rate that was found to be slow.
UnsentLimit slow_one() {
  UnsentLimit limit;
  limit.saw({kSlow, kMuch});
  EXPECT_EQ(limit.change(0), 0u) << "one measure";
  limit.saw({kSlow, kMuch});
  EXPECT_EQ(limit.change(0), kSlowLimit);
  EXPECT_EQ(limit.change(0), 0u) << "once";
  return limit;
}

TEST(UnsentLimit, ASlowConnectionThatTookMuchGetsOne) {
  slow_one();
}

TEST(UnsentLimit, HoldsFourMillisecondsWorthOfSlowerOnesToo) {
  UnsentLimit limit;
  for (int look = 0; look < 2; ++look) limit.saw({kSlow / 5, kMuch});
  EXPECT_EQ(limit.change(0), kSlowLimit / 5);
}

TEST(UnsentLimit, AFastConnectionGetsNone) {
  UnsentLimit limit;
  for (const double rate : {kSlow, 3e9, kSlow, kSlow, 3e9}) {  // slow: the peer did not read
    limit.saw({rate, 4'000'000});
    EXPECT_EQ(limit.change(0), 0u);
  }
}

TEST(UnsentLimit, WhatTheKernelCannotTellLimitsNothing) {
  UnsentLimit limit;
  for (const SendingRate& unknown : {SendingRate{}, SendingRate{0, kMuch}, SendingRate{0, kMuch}}) limit.saw(unknown);
  EXPECT_EQ(limit.change(0), 0u);
}

TEST(UnsentLimit, RisesAtOnceWithTheRate) {
  UnsentLimit limit = slow_one();
  limit.saw({10 * kSlow, kSlowLimit});
  EXPECT_EQ(limit.change(0), 10 * kSlowLimit);
}

TEST(UnsentLimit, FallsInSteps) {
  UnsentLimit limit = slow_one();
  limit.saw({10 * kSlow, kSlowLimit});
  uint64_t now = limit.change(0);
  int steps = 0;
  for (int look = 0; look < 30; ++look) {
    limit.saw({kSlow, kSlowLimit});
    const uint64_t next = limit.change(0);
    if (next == 0) continue;
    EXPECT_LT(next, now);
    now = next;
    ++steps;
  }
  EXPECT_GT(steps, 2);
  EXPECT_LT(now, kSlowLimit * 3 / 2);
}

TEST(UnsentLimit, TheMessageLayersGoesFirst) {
  UnsentLimit limit = slow_one();
  EXPECT_EQ(limit.change(50'000), 50'000u);
  EXPECT_EQ(limit.change(55'000), 0u);
  limit.wrote(UnsentLimit::kLookEveryBytes);
  EXPECT_FALSE(limit.wants_look());
}

TEST(UnsentLimit, ARateThatWasToldIsNotMeasured) {
  UnsentLimit limit(25'000);
  limit.wrote(UnsentLimit::kLookEveryBytes);
  EXPECT_FALSE(limit.wants_look());
  EXPECT_EQ(limit.change(0), 0u);
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
