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
  int64_t now_ns = 0;

  // Takes much, and sends at a rate for a while. The counts are looked at before and after that, if need be.
  void send(double bytes_per_s, uint64_t unsent_then, uint64_t us = 20'000) {
    counts.unsent_bytes = kMuch;
    limit.saw(counts, now_ns);
    go_on(bytes_per_s, unsent_then, us);
    if (limit.looks_again() && limit.wants_second_look(now_ns)) limit.saw_again(counts, now_ns);
  }
  void go_on(double bytes_per_s, uint64_t unsent_then, uint64_t us) {
    counts.acked_bytes += static_cast<uint64_t>(bytes_per_s * 1e-6 * static_cast<double>(us));
    counts.sending_us += us;
    counts.unsent_bytes = unsent_then;
    now_ns += static_cast<int64_t>(us) * 1000;
  }
};

Connection slow_one() {
  Connection slow;
  slow.send(kSlow, kMuch / 2);
  EXPECT_EQ(slow.limit.change(0), 0u) << "one measure";
  slow.send(kSlow, kMuch / 2);
  EXPECT_EQ(slow.limit.change(0), kSlowLimit);
  EXPECT_EQ(slow.limit.change(0), 0u) << "once";
  return slow;
}

TEST(UnsentLimit, ASlowConnectionThatTookMuchGetsOne) {
  slow_one();
}

TEST(UnsentLimit, HoldsFourMillisecondsWorthOfSlowerOnesToo) {
  Connection slower;
  for (int look = 0; look < 2; ++look) slower.send(kSlow / 5, kMuch * 9 / 10);
  EXPECT_EQ(slower.limit.change(0), kSlowLimit / 5);
}

// Its peer delays acknowledgements, so it looks slow; but it always has sent what it had taken.
TEST(UnsentLimit, AFastConnectionGetsNone) {
  Connection fast;
  for (int i = 0; i < 20; ++i) {
    fast.send(kSlow, 0, 40'000);
    EXPECT_EQ(fast.limit.change(0), 0u);
  }
}

// New data is unsent at the second look; what was taken before the first one is gone.
TEST(UnsentLimit, NewDataIsNotOld) {
  Connection fast;
  for (int i = 0; i < 20; ++i) {
    fast.send(4e9, kMuch, 10'000);
    EXPECT_EQ(fast.limit.change(0), 0u);
  }
}

TEST(UnsentLimit, APeerThatDoesNotReadIsNoSlowConnection) {
  Connection peer_busy;
  for (int i = 0; i < 20; ++i) {
    peer_busy.counts.unsent_bytes = kMuch;
    peer_busy.limit.saw(peer_busy.counts, peer_busy.now_ns);
    peer_busy.go_on(kSlow / 10, kMuch / 2, 10'000);
    peer_busy.counts.waiting_us += 10'000;
    peer_busy.limit.saw_again(peer_busy.counts, peer_busy.now_ns);
    EXPECT_EQ(peer_busy.limit.change(0), 0u);
  }
}

TEST(UnsentLimit, TheSecondLookComesLaterAndOnlyIfThereIsMuch) {
  UnsentLimit limit;
  limit.saw({0, 0, 0, UnsentLimit::kMuchBytes - 1}, 0);
  EXPECT_FALSE(limit.looks_again());
  limit.saw({0, 0, 0, UnsentLimit::kMuchBytes}, 5);
  EXPECT_TRUE(limit.looks_again());
  EXPECT_FALSE(limit.wants_second_look(UnsentLimit::kTooLongNs));
  EXPECT_TRUE(limit.wants_second_look(UnsentLimit::kTooLongNs + 5));
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
  for (const SendingCounts& unknown : {SendingCounts{}, SendingCounts{0, 0, 0, kMuch}, SendingCounts{0, 0, 0, kMuch}}) {
    limit.saw(unknown, 0);
    limit.saw_again(unknown, 20'000'000);
    EXPECT_EQ(limit.change(0), 0u);
  }
}

TEST(UnsentLimit, RisesAtOnceWithTheRate) {
  Connection slow = slow_one();
  slow.send(10 * kSlow, kSlowLimit);
  slow.limit.saw(slow.counts, slow.now_ns);
  EXPECT_EQ(slow.limit.change(0), 10 * kSlowLimit);
}

TEST(UnsentLimit, FallsInSteps) {
  Connection slow = slow_one();
  slow.send(10 * kSlow, kSlowLimit);
  slow.limit.saw(slow.counts, slow.now_ns);
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
  limit.saw({}, 0);
  EXPECT_FALSE(limit.wants_look());
}

}  // namespace
}  // namespace trestle
