// How much a rail takes of what waits: fragments, windows, and messages that stay whole.
#include "transport/message/rail_choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"

namespace trestle {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t takes(const std::vector<RailLoad>& loads, size_t rail, const WaitingBytes& waiting) {
  return bytes_to_take(loads, rail, window_bytes(loads[rail]), waiting);
}

TEST(RailChoice, FragmentsShrinkTowardsTheEnd) {
  const std::vector<RailLoad> loads = {{0.5, 20'000, 0}, {0.25, 20'000, 0}};
  uint64_t before = kMostFragmentBytes;
  for (uint64_t left = 4 * kMiB; left >= kLeastFragmentBytes; left /= 2) {
    const uint64_t bytes = takes(loads, 0, {left, false, left});
    EXPECT_LE(bytes, before);
    EXPECT_LE(bytes, left);
    EXPECT_GE(bytes, kLeastFragmentBytes);
    before = bytes;
  }
  EXPECT_EQ(before, kLeastFragmentBytes);
}

TEST(RailChoice, ARailThatWouldDelayTheEndTakesNothing) {
  const std::vector<RailLoad> loads = {{1, 20'000, 0}, {0.001, 20'000, 0}, {1, 50'000'000, 0}};
  EXPECT_GT(takes(loads, 0, {kMiB, false, kMiB}), 0u);
  EXPECT_EQ(takes(loads, 1, {kMiB, false, kMiB}), 0u) << "too slow";
  EXPECT_EQ(takes(loads, 2, {kMiB, false, kMiB}), 0u) << "too far away";
  EXPECT_GT(takes(loads, 2, {kMiB, false, 100 * kMiB}), 0u) << "much more waits behind it";
}

TEST(RailChoice, ARailCarriesNoMoreThanItHasShown) {
  RailLoad load{0.125, 50'000, 0};
  const uint64_t window = window_bytes(load);
  load.most = 16 * 1024;
  EXPECT_GT(window, 16u * 1024);
  EXPECT_EQ(window_bytes(load), 16u * 1024);
  EXPECT_TRUE(is_starved(kMiB, 16 * 1024, {0.125, 5'000'000, 0, 16 * 1024})) << "idle for most of each round trip";
  EXPECT_FALSE(is_starved(kMiB, 16 * 1024, {0.125, 50'000, 0, 16 * 1024}));
  EXPECT_TRUE(is_starved(0, 16 * 1024, {0.125, 50'000, 0})) << "nothing waits";
}

TEST(RailChoice, ARailHoldsAMillisecondsWorth) {
  EXPECT_EQ(bytes_to_hold(0.125), 125'000u);
  EXPECT_EQ(bytes_to_hold(0.000125), 16u * 1024) << "system calls would take longer than the rail";
  EXPECT_EQ(bytes_to_hold(0), 0u) << "unknown: no limit";
}

// Short where rails are fast, so that little waits behind a fragment. Longer where that would be mostly headers.
TEST(RailChoice, FragmentsAreAsLongAsTheRateAllows) {
  uint64_t before = 0;
  for (const auto& [rate, bytes] : {std::pair{0.004, 8u * 1024},
                                    {0.0125, 25'000u},
                                    {0.03, 32u * 1024},
                                    {0.125, 87'500u},
                                    {0.2, 140'000u},
                                    {10.0, 1024u * 1024}}) {
    const std::vector<RailLoad> loads = {{rate, 50'000, 0}};
    EXPECT_EQ(takes(loads, 0, {64 * kMiB, false, 64 * kMiB}), bytes) << rate;
    EXPECT_GE(bytes, before);
    before = bytes;
  }
}

TEST(RailChoice, WhatIsLateDelaysWhatComesBehindIt) {
  const std::vector<RailLoad> loads = {{1, 20'000, 0}, {1, 1'000, 0, 1e9, 5'000'000}};
  EXPECT_EQ(fastest_rail(loads, 64), 0u);
  EXPECT_EQ(takes(loads, 1, {kMiB, false, kMiB}), 0u);
  EXPECT_GT(takes(loads, 1, {kMiB, false, 100 * kMiB}), 0u) << "it may come later";
}

TEST(RailChoice, AFragmentThatTakesLongMustComeInTimeAtHalfTheRateToo) {
  const double slow = 0.000125;  // 66 ms for the shortest fragment
  const auto taken = [&](double finish_ms) {
    const auto bytes = static_cast<uint64_t>(finish_ms * 1e6 * 0.125);
    return takes({{0.125, 50'000, 0}, {slow, 50'000, 0}}, 1, {bytes, false, bytes});
  };
  EXPECT_EQ(taken(100), 0u);
  EXPECT_EQ(taken(140), kLeastFragmentBytes);
}

TEST(RailChoice, WhatStaysWholeIsTakenByOneRailAsAWhole) {
  Rng rng(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<RailLoad> loads(1 + rng.below(4));
    for (RailLoad& load : loads) {
      load.rate = 0.001 * static_cast<double>(1 + rng.below(1000));
      load.latency_ns = static_cast<double>(rng.below(100'000));
      load.queued = static_cast<double>(rng.below(30'000));
    }
    const uint64_t bytes = 1 + rng.below(100'000);
    size_t takers = 0;
    for (size_t rail = 0; rail < loads.size(); ++rail) {
      const uint64_t taken = takes(loads, rail, {bytes, true, bytes});
      EXPECT_TRUE(taken == 0 || taken == bytes);
      takers += taken > 0 ? 1 : 0;
    }
    EXPECT_EQ(takers, 1u);
  }
}

TEST(RailChoice, AFullWindowHoldsTheRailsOwnRateForAWhile) {
  RailLoad load{1, 1'000'000, 0};
  const uint64_t window = window_bytes(load);
  EXPECT_EQ(window, 22'000'000u) << "20 ms and two round trips";
  EXPECT_FALSE(window_is_full(load, kMiB));
  load.queued = static_cast<double>(window);
  EXPECT_TRUE(window_is_full(load, kMiB));
  EXPECT_TRUE(window_is_full(load, 1));
  EXPECT_FALSE(window_is_full({0, 0, 0}, kMiB)) << "a rail with nothing under way always has room";
}

TEST(RailChoice, TheFirstRailCarriesEverythingBeforeAnythingIsKnown) {
  std::vector<RailLoad> loads(3);
  assume_first(loads, 3);
  EXPECT_EQ(loads[0].rate + loads[1].rate + loads[2].rate, 0) << "none is up";
  assume_first(loads, 1);
  EXPECT_EQ(loads[0].rate, 0);
  EXPECT_GT(loads[1].rate, 0);
  EXPECT_EQ(loads[2].rate, 0);
  loads = {{0, 0, 0}, {0.5, 0, 0}};
  assume_first(loads, 0);
  EXPECT_EQ(loads[0].rate, 0) << "something is known of another one";
}

TEST(RailChoice, BackOffDoublesBetweenItsBounds) {
  EXPECT_EQ(next_rail_backoff_ns(0), kFirstRailBackoffNs);
  EXPECT_EQ(next_rail_backoff_ns(kFirstRailBackoffNs), 2 * kFirstRailBackoffNs);
  EXPECT_EQ(next_rail_backoff_ns(kMostRailBackoffNs), kMostRailBackoffNs);
}

}  // namespace
}  // namespace trestle
