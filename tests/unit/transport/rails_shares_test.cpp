// How several rails divide what there is to send: against the optimum, and against rails of known rates.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "support/sim_rails.h"
#include "transport/message/assembly.h"
#include "transport/message/shares.h"

namespace trestle {
namespace {

// The water-filling optimum by bisection over the time at which all rails end.
double optimum_ns(const std::vector<RailLoad>& rails, double bytes) {
  double low = 0;
  double high = 1e15;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    double carried = 0;
    for (const RailLoad& rail : rails) {
      if (rail.rate > 0) carried += std::max(0.0, (middle - rail.latency_ns - rail.queued / rail.rate) * rail.rate);
    }
    (carried < bytes ? low : high) = middle;
  }
  return high;
}

TEST(Shares, AreTheWaterFillingOptimum) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<RailLoad> rails(1 + rng.below(6));
    for (RailLoad& rail : rails) {
      rail.rate = rng.below(5) == 0 ? 0 : 0.001 * static_cast<double>(1 + rng.below(10'000));
      rail.latency_ns = static_cast<double>(rng.below(3) * rng.below(1'000'000));
      rail.queued = static_cast<double>(rng.below(2) * rng.below(4'000'000));
    }
    rails[rng.below(rails.size())].rate = 1;
    const auto bytes = static_cast<double>(1 + rng.below(100'000'000));
    const double finish = finish_ns(rails, bytes);
    EXPECT_NEAR(finish, optimum_ns(rails, bytes), 1e-6 * finish);
    double shares = 0;
    for (const RailLoad& rail : rails) shares += share_until(rail, finish);
    EXPECT_NEAR(shares, bytes, 1e-6 * bytes);
  }
}

TEST(Shares, WhatStaysWholeTakesTheRailOnWhichItArrivesFirst) {
  const std::vector<RailLoad> rails = {{1, 50'000, 0}, {0.1, 1'000, 0}, {0, 0, 0}};
  EXPECT_EQ(fastest_rail(rails, 100), 1u);
  EXPECT_EQ(fastest_rail(rails, 100'000), 0u);
  EXPECT_EQ(fastest_rail(std::vector<RailLoad>{{}, {}}, 1), 2u) << "no rail can be used";
}

// All ways to cut 6 bytes, in all orders, with and without a part that is given up on the way.
TEST(Assembly, EveryCutInEveryOrderIsTakenOnce) {
  constexpr uint64_t kBytes = 6;
  for (unsigned cuts = 0; cuts < 1u << (kBytes - 1); ++cuts) {
    std::vector<std::pair<uint64_t, uint64_t>> parts;
    uint64_t from = 0;
    for (uint64_t at = 1; at <= kBytes; ++at) {
      if (at < kBytes && (cuts >> (at - 1) & 1) == 0) continue;
      parts.emplace_back(from, at - from);
      from = at;
    }
    std::vector<size_t> order(parts.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      Assembly assembly;
      for (const size_t i : order) {
        ASSERT_TRUE(assembly.claim(parts[i].first, parts[i].second, kBytes));
        ASSERT_FALSE(assembly.claim(parts[i].first, parts[i].second, kBytes)) << "twice";
        assembly.give_up(parts[i].first, parts[i].second);
        ASSERT_TRUE(assembly.claim(parts[i].first, parts[i].second, kBytes));
        assembly.arrived(parts[i].second);
      }
      EXPECT_EQ(assembly.arrived_bytes(), kBytes);
      for (uint64_t at = 0; at < kBytes; ++at) ASSERT_FALSE(assembly.claim(at, 1, kBytes));
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(Assembly, NothingOutsideIsTaken) {
  Assembly assembly;
  EXPECT_FALSE(assembly.claim(0, 0, 10));
  EXPECT_FALSE(assembly.claim(0, 11, 10));
  EXPECT_FALSE(assembly.claim(10, 1, 10));
  EXPECT_FALSE(assembly.claim(11, UINT64_MAX, 10));
  EXPECT_FALSE(assembly.claim(UINT64_MAX, 1, 10));
  EXPECT_TRUE(assembly.claim(3, 4, 10));
  EXPECT_FALSE(assembly.claim(0, 4, 10));
  EXPECT_FALSE(assembly.claim(6, 2, 10));
  EXPECT_FALSE(assembly.claim(0, 10, 10));
  EXPECT_TRUE(assembly.claim(0, 3, 10));
  EXPECT_TRUE(assembly.claim(7, 3, 10));
}

// Nanoseconds of one message of `bytes` from rank 0 to rank 1, after `warm` others.
int64_t time_of(SimRails& net, size_t bytes, int warm) {
  std::vector<std::byte> from(bytes), to(bytes);
  static uint64_t number = 0;
  int64_t took = 0;
  for (int i = 0; i <= warm; ++i) {
    const ConstPiece out{from.data(), bytes, nullptr};
    const Piece in{to.data(), bytes, nullptr};
    SendRequest send;
    RecvRequest recv;
    send.peer = 1;
    recv.peer = 0;
    send.tag.operation = recv.tag.operation = ++number;
    send.pieces = {&out, 1};
    recv.pieces = {&in, 1};
    send.bytes = recv.bytes = bytes;
    const int64_t begin = net.now_ns();
    EXPECT_TRUE(net[1].post_recv(recv).value());
    EXPECT_TRUE(net[0].post_send(send).value());
    while (recv.state != RequestState::kDone) {
      if (!net.step().ok()) return -1;
    }
    took = net.now_ns() - begin;
    while (send.state != RequestState::kDone) EXPECT_TRUE(net.step().ok());
  }
  return took;
}

struct UnequalCase {
  std::vector<SimRailSpec> rails;
  size_t bytes;
  double least;  // of what all rails together allow
};

TEST(Shares, UnequalRailsAddUpUnaided) {
  const UnequalCase cases[] = {
      {{{0.125, 50'000}, {0.0625, 50'000}}, 16 << 20, 0.97},
      {{{0.125, 50'000}, {0.0625, 50'000}}, 4 << 20, 0.95},
      {{{0.125, 50'000}, {0.0625, 50'000}}, 1 << 20, 0.9},
      {{{0.0625, 50'000}, {0.0375, 50'000}, {0.0125, 50'000}}, 16 << 20, 0.95},
      {{{0.125, 50'000}, {0.00625, 50'000}}, 16 << 20, 0.96},
      {{{0.125, 50'000}, {0.000125, 50'000}}, 16 << 20, 0.97},
      {{{0.125, 50'000}, {0.125, 5'000'000}}, 16 << 20, 0.9},
  };
  for (const UnequalCase& one : cases) {
    SimRails net(one.rails, 2);
    const int64_t took = time_of(net, one.bytes, 20);
    std::vector<RailLoad> loads;
    for (const SimRailSpec& rail : one.rails) loads.push_back({rail.rate, static_cast<double>(rail.latency_ns), 0});
    const double best = finish_ns(loads, static_cast<double>(one.bytes));
    EXPECT_GE(best / static_cast<double>(took), one.least)
        << one.rails.size() << " rails, the second at " << one.rails[1].rate << ", " << one.bytes << " bytes";
  }
}

// What all rails together carry at best in this time, over what they have carried.
double part_of_best(SimRails& net, const std::vector<SimRailSpec>& rails, size_t bytes, int warm, int count) {
  std::vector<RailLoad> loads;
  for (const SimRailSpec& rail : rails) loads.push_back({rail.rate, static_cast<double>(rail.latency_ns), 0});
  time_of(net, bytes, warm - 1);
  int64_t took = 0;
  for (int i = 0; i < count; ++i) took += time_of(net, bytes, 0);
  return count * finish_ns(loads, static_cast<double>(bytes)) / static_cast<double>(took);
}

// A bucket lets a measurement pass at once, again and again after each second of little use.
TEST(Shares, ABucketOnTheWayDeceivesNobody) {
  int number = 0;
  for (const double mbps : {1.0, 5.0, 50.0, 500.0}) {
    for (const double burst : {0.0, 16384.0, 65536.0}) {
      const size_t bytes = ++number % 2 == 0 ? 4u << 20 : 16u << 20;
      const std::vector<SimRailSpec> rails = {{0.125, 50'000}, {mbps * 0.000125, 50'000, 0, burst}};
      SimRails net(rails, 2);
      EXPECT_GE(part_of_best(net, rails, bytes, 2, static_cast<int>((160u << 20) / bytes)), 0.95)
          << mbps << " Mbit/s, a bucket of " << burst << ", " << bytes << " bytes";
    }
  }
}

// From the first message on, if no bucket is larger than what is assumed of every rail.
TEST(Shares, ASlowRailBehindABucketDelaysNotEvenTheFirstMessage) {
  for (const double mbps : {1.0, 5.0}) {
    SimRails both({{0.125, 50'000}, {mbps * 0.000125, 50'000, 0, 16384}}, 2);
    SimRails one({{0.125, 50'000}}, 2);
    const int64_t alone = time_of(one, 16 << 20, 0);
    EXPECT_LE(time_of(both, 16 << 20, 0), alone * 103 / 100) << mbps;
  }
}

TEST(Shares, MessagesOf64KiBNeverWaitForASlowRail) {
  for (const double slow : {0.00625, 0.000125}) {
    for (const double burst : {0.0, slow < 0.001 ? 16384.0 : 0.0}) {
      SimRails two({{0.125, 50'000}, {slow, 50'000, 0, burst}}, 2);
      SimRails one({{0.125, 50'000}}, 2);
      const int64_t alone = time_of(one, 64 * 1024, 20);
      EXPECT_LE(time_of(two, 64 * 1024, 50), alone * 105 / 100) << slow << " " << burst;
    }
  }
}

TEST(Shares, ARailThatBecomesSlowLosesItsShare) {
  SimRails net({{0.125, 50'000}, {0.125, 50'000}}, 2);
  time_of(net, 4 << 20, 20);
  net.set_rate(1, 0.0125);
  const int64_t begin = net.now_ns();
  while (net.now_ns() - begin < 1'000'000'000) time_of(net, 4 << 20, 0);
  const double best = (4 << 20) / (0.125 + 0.0125);
  EXPECT_LE(static_cast<double>(time_of(net, 4 << 20, 0)), 1.1 * best);
  // And gets it back.
  net.set_rate(1, 0.125);
  const int64_t healed = net.now_ns();
  while (net.now_ns() - healed < 3'000'000'000) time_of(net, 4 << 20, 0);
  EXPECT_LE(static_cast<double>(time_of(net, 4 << 20, 0)), 1.1 * (4 << 20) / 0.25);
}

// Rank 1 does not run while the second probe over rail 1 waits for it, which counts. That over rail 0 has come.
void measure_late(SimRails& net) {
  const ConstPiece nothing{nullptr, 0, nullptr};
  SendRequest send;
  RecvRequest recv;
  send.peer = 1;
  recv.peer = 0;
  send.pieces = {&nothing, 1};
  ASSERT_TRUE(net[1].post_recv(recv).value());
  ASSERT_TRUE(net[0].post_send(send).value());
  while (net[0].rail_reports().empty() || net[0].rail_reports()[0].goodput == 0) ASSERT_TRUE(net.step().ok());
  const int64_t until = net.now_ns() + 100'000'000;
  while (net.now_ns() < until) ASSERT_TRUE(net.step(1).ok());
  while (net[0].rail_reports()[1].queued_bytes > 0) ASSERT_TRUE(net.step().ok());
  ASSERT_GT(net[0].rail_reports()[1].goodput, 0u);
  ASSERT_LT(net[0].rail_reports()[1].goodput, 1'000'000u);
  while (recv.state != RequestState::kDone || send.state != RequestState::kDone) ASSERT_TRUE(net.step().ok());
}

TEST(Shares, APeerThatRanLateHasAllItsRailsSoon) {
  SimRails net({{0.125, 20'000}, {0.0625, 50'000, 0, 16384}}, 2);
  measure_late(net);
  const int64_t begin = net.now_ns();
  while (net.now_ns() - begin < 200'000'000) time_of(net, 4 << 20, 0);
  EXPECT_LE(static_cast<double>(time_of(net, 4 << 20, 0)), 1.1 * (4 << 20) / 0.1875);
}

// They take this rail because its latency is the least. They measure nothing.
TEST(Shares, ARailThatSeemsSlowIsMeasuredAgainThoughItCarriesSmallMessages) {
  SimRails net({{0.125, 60'000}, {0.02, 20'000, 0, 16384}}, 2);
  measure_late(net);
  const int64_t begin = net.now_ns();
  while (net.now_ns() - begin < 2'500'000'000) {
    time_of(net, 4 << 20, 0);
    time_of(net, 1, 0);
  }
  EXPECT_LE(static_cast<double>(time_of(net, 4 << 20, 0)), 1.1 * (4 << 20) / 0.145);
}

}  // namespace
}  // namespace trestle
