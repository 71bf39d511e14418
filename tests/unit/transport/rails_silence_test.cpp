// Rails over which nothing is acknowledged: the pairs of ranks that use one leave it together, and rails that work are
// left alone, whatever has happened to other pairs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "support/sim_traffic.h"

namespace trestle {
namespace {

constexpr int64_t kSilenceNs = 3'000 * kMs;

struct Lost {
  uint64_t of_pairs = 0;
  uint64_t of_others = 0;
};

// How often ranks have lost rails, as both ends count them: pairs without `apart`, and pairs with it.
Lost losses(SimRails& net, int32_t ranks, int32_t apart) {
  Lost lost;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (const RailReport& rail : net[rank].rail_reports())
      (rank == apart || rail.peer == apart ? lost.of_others : lost.of_pairs) += rail.losses;
  }
  return lost;
}

void exchange(SimRails& net, int32_t from, int32_t to, size_t bytes) {
  static uint64_t number = 1 << 20;
  Message message(from, to, ++number, bytes, false);
  ASSERT_TRUE(net[to].post_recv(message.recv).value());
  ASSERT_TRUE(net[from].post_send(message.send).value());
  while (!message.done()) ASSERT_TRUE(net.step().ok());
  ASSERT_TRUE(message.right());
}

void let_pass(SimRails& net, int64_t time_ns, int32_t frozen = -1) {
  for (const int64_t begin = net.now_ns(); net.now_ns() - begin < time_ns;) ASSERT_TRUE(net.step(frozen).ok());
}

// As in a collective: each message waits for the one before, which other ranks have exchanged. Only the first pair has
// data under way when the rail becomes silent.
TEST(RailsSilence, PairsThatWaitForEachOtherLeaveARailTogether) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SimRails net({{}, {}}, 4, seed, {.silence_ns = kSilenceNs});
    Traffic before(net, 4, seed, 40);
    ASSERT_TRUE(before.run([](Rng&) {}).ok());
    const int64_t begin_ns = net.now_ns();
    net.silence(0);
    for (int32_t number = 0; number < 24; ++number)
      exchange(net, number % 4, (number % 4 + 1 + number / 4 % 3) % 4, 256 << 10);
    EXPECT_LT(net.now_ns() - begin_ns, kSilenceNs) << seed;
  }
}

// The others answer when they are asked.
TEST(RailsSilence, AHostsCableCostsTheOtherPairsNothing) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    constexpr int32_t kLost = 3;
    SimRails net({{}, {}}, 4, seed, {.silence_ns = kSilenceNs});
    Traffic before(net, 4, seed, 40);
    ASSERT_TRUE(before.run([](Rng&) {}).ok());
    net.silence(seed % 2, kLost);
    Traffic after(net, 4, seed + 1000, 60);
    ASSERT_TRUE(after.run([](Rng&) {}).ok());
    EXPECT_GT(losses(net, 4, kLost).of_others, 0u) << seed;
    EXPECT_EQ(losses(net, 4, kLost).of_pairs, 0u) << seed;
  }
}

// Only answers of another rail that come while one is silent say that the rail, and not the rank, is to blame. A rank
// that comes back answers over one rail first.
TEST(RailsSilence, RanksThatStopAndComeBackCostNoRailAlthoughAnotherConnectionHasEnded) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    SimRails net({{}, {0.05, 400'000}}, 3, seed, {.silence_ns = kSilenceNs});
    Traffic before(net, 3, seed, 20);
    ASSERT_TRUE(before.run([](Rng&) {}).ok());
    net.reset(seed % 2, 0, 2);
    ASSERT_TRUE(net.step().ok());
    const auto away = static_cast<int32_t>(rng.below(2));
    Message message(1 - away, away, 1 << 16, 4 << 20, false), back(away, 1 - away, 1 << 17, 4 << 20, false);
    for (Message* one : {&message, &back}) {
      ASSERT_TRUE(net[one->to].post_recv(one->recv).value());
      ASSERT_TRUE(net[one->from].post_send(one->send).value());
    }
    for (uint64_t i = rng.below(40); i > 0; --i) ASSERT_TRUE(net.step().ok());
    let_pass(net, static_cast<int64_t>(rng.below(2 * kSilenceNs)), away);
    while (!message.done() || !back.done()) ASSERT_TRUE(net.step().ok());
    let_pass(net, kSilenceNs);
    EXPECT_GT(losses(net, 3, 2).of_others, 0u) << seed;
    EXPECT_EQ(losses(net, 3, 2).of_pairs, 0u) << seed << " " << away;
  }
}

// Packets that are lost are sent again, after 0.2 s, and after twice as long if they are lost again.
TEST(RailsSilence, PacketsThatAreSentAgainCostNoRailAlthoughAnotherConnectionHasEnded) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SimRails net({{}, {}}, 3, seed, {.silence_ns = kSilenceNs});
    Traffic before(net, 3, seed, 20);
    ASSERT_TRUE(before.run([](Rng&) {}).ok());
    net.reset(seed % 2, 0, 2);
    Traffic after(net, 3, seed + 1000, 60);
    const Status status =
        after.run([&](Rng& rng) { net.delay(rng.below(2), 1, rng.below(2) == 0 ? 0 : 2, 600 * kMs); });
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(losses(net, 3, 1).of_others, 0u) << seed;
  }
}

// In an overloaded network answers take long. One connection that ends must not be the reason for the next end, and so
// on.
TEST(RailsSilence, OneEndDoesNotBringTheNext) {
  constexpr int32_t kRanks = 6;
  SimRails net({{}, {}}, kRanks, 1, {.silence_ns = kSilenceNs});
  Traffic before(net, kRanks, 1, 60);
  ASSERT_TRUE(before.run([](Rng&) {}).ok());
  net.reset(0, 0, 1);
  const int64_t begin_ns = net.now_ns();
  uint64_t early = 0;
  for (uint64_t seed = 2; net.now_ns() - begin_ns < 5 * kSilenceNs; ++seed) {
    Traffic after(net, kRanks, seed, 30);
    const Status status = after.run([&](Rng& rng) {
      const auto a = static_cast<int32_t>(rng.below(kRanks)), b = static_cast<int32_t>(rng.below(kRanks));
      if (a != b && rng.below(3) == 0) net.delay(0, a, b, 1'400 * kMs);
    });
    ASSERT_TRUE(status.ok()) << status.error().message;
    if (net.now_ns() - begin_ns < 3 * kSilenceNs) early = losses(net, kRanks, -1).of_pairs;
  }
  EXPECT_EQ(losses(net, kRanks, -1).of_pairs, early);
}

// A long way there and back, and a time that is short for it, but not too short.
TEST(RailsSilence, AShortTimeLimitIsNotDivided) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimRails net({{0.1, 20 * kMs}, {0.1, 15 * kMs}}, 3, seed, {.silence_ns = 100 * kMs});
    Traffic before(net, 3, seed, 30);
    ASSERT_TRUE(before.run([](Rng&) {}).ok());
    const uint64_t first = losses(net, 3, 1).of_others;
    for (int round = 0; round < 10; ++round) {
      net.reset(seed % 2, 0, 2);
      exchange(net, 0, 1, 256 << 10);
      exchange(net, 1, 2, 256 << 10);
    }
    EXPECT_EQ(losses(net, 3, 1).of_others, first) << seed;
  }
}

}  // namespace
}  // namespace trestle
