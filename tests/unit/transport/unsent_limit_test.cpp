// When a connection gets a limit, and how the limit follows what the kernel has counted.
#include "transport/tcp/unsent_limit.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

constexpr double kSlow = 25e6;               // bytes per second: 200 Mbit/s
constexpr uint64_t kSlowLimit = 4 * 25'000;  // 4 ms of it
constexpr uint64_t kMuch = 1'000'000;        // 40 ms of it

// A connection without a told rate, and what the kernel counts of it.
struct Connection {
  UnsentLimit limit;
  SendingCounts counts;

  // Sends at a rate for a while; then its counts are looked at.
  void send(double bytes_per_s, uint64_t unsent, uint64_t us = 20'000) {
    counts.acked_bytes += static_cast<uint64_t>(bytes_per_s * 1e-6 * static_cast<double>(us));
    counts.sending_us += us;
    counts.unsent_bytes = unsent;
    limit.saw(counts);
  }
};

Connection slow_one() {
  Connection slow;
  slow.send(kSlow, kMuch);
  EXPECT_EQ(slow.limit.change(0), 0u) << "one measure";
  slow.send(kSlow, kMuch);
  EXPECT_EQ(slow.limit.change(0), kSlowLimit);
  EXPECT_EQ(slow.limit.change(0), 0u) << "once";
  return slow;
}

TEST(UnsentLimit, ASlowConnectionThatTookMuchGetsOne) {
  slow_one();
}

TEST(UnsentLimit, HoldsFourMillisecondsWorthOfSlowerOnesToo) {
  Connection slower;
  for (int look = 0; look < 2; ++look) slower.send(kSlow / 5, kMuch);
  EXPECT_EQ(slower.limit.change(0), kSlowLimit / 5);
}

TEST(UnsentLimit, AFastConnectionGetsNone) {
  Connection fast;
  for (const double rate : {kSlow, 3e9, kSlow, kSlow, 3e9}) {  // slow: the peer delayed an acknowledgement
    fast.send(rate, 4'000'000);
    EXPECT_EQ(fast.limit.change(0), 0u);
  }
}

// A token bucket lets some data pass at once. Looks that are that close measure nothing; together they do.
TEST(UnsentLimit, ABurstIsNoMeasure) {
  Connection slow = slow_one();
  for (int i = 0; i < 8; ++i) {
    slow.send(100 * kSlow, kSlowLimit, 100);
    slow.send(kSlow / 4, kSlowLimit, 12'000);
    slow.send(kSlow, kSlowLimit, 8'000);
    EXPECT_EQ(slow.limit.change(0), 0u);
  }
}

TEST(UnsentLimit, WhatTheKernelCannotTellLimitsNothing) {
  UnsentLimit limit;
  for (const SendingCounts& unknown : {SendingCounts{}, SendingCounts{0, 0, kMuch}, SendingCounts{0, 0, kMuch}})
    limit.saw(unknown);
  EXPECT_EQ(limit.change(0), 0u);
}

TEST(UnsentLimit, RisesAtOnceWithTheRate) {
  Connection slow = slow_one();
  slow.send(10 * kSlow, kSlowLimit);
  EXPECT_EQ(slow.limit.change(0), 10 * kSlowLimit);
}

TEST(UnsentLimit, FallsInSteps) {
  Connection slow = slow_one();
  slow.send(10 * kSlow, kSlowLimit);
  uint64_t now = slow.limit.change(0);
  int steps = 0;
  for (int look = 0; look < 30; ++look) {
    slow.send(kSlow, kSlowLimit);
    const uint64_t next = slow.limit.change(0);
    if (next == 0) continue;
    EXPECT_LT(next, now);
    now = next;
    ++steps;
  }
  EXPECT_GT(steps, 2);
  EXPECT_LT(now, kSlowLimit * 3 / 2);
}

TEST(UnsentLimit, TheMessageLayersGoesFirst) {
  UnsentLimit limit = slow_one().limit;
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
