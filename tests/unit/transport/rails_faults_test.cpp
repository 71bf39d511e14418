// Messages over several simulated rails: everything arrives once, in the right memory, whatever happens to the rails as
// long as one is left.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "base/rng.h"
#include "support/sim_traffic.h"

namespace trestle {
namespace {

std::vector<SimRailSpec> random_rails(Rng& rng, size_t count) {
  std::vector<SimRailSpec> rails(count);
  for (SimRailSpec& rail : rails) {
    rail.rate = 0.01 * static_cast<double>(1 + rng.below(30));
    rail.latency_ns = static_cast<int64_t>(1000 + rng.below(200'000));
    rail.stated = rng.below(2) == 0 ? 0 : rail.rate * 1e9;
  }
  return rails;
}

TEST(RailsFaults, EveryMessageArrivesOnceOverOneTwoAndThreeRails) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    SimRails net(random_rails(rng, 1 + seed % 3), 2 + static_cast<int32_t>(seed % 2), seed);
    Traffic traffic(net, 2 + static_cast<int32_t>(seed % 2), seed, 60);
    const Status status = traffic.run([](Rng&) {});
    ASSERT_TRUE(status.ok()) << seed << ": " << status.error().message;
  }
}

// Resets, silence, and interfaces that are down, with at most all rails but the first hurt at the same time.
TEST(RailsFaults, OneRailThatIsLeftCarriesEverything) {
  uint64_t again = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const size_t rails = 2 + seed % 2;
    SimRails net(random_rails(rng, rails), 2, seed, {.silence_ns = 60'000'000});
    Traffic traffic(net, 2, seed, 60);
    const Status status = traffic.run([&](Rng& random) {
      const size_t rail = 1 + random.below(rails - 1);
      switch (random.below(6)) {
        case 0:
          return net.reset(rail);
        case 1:
          return net.silence(rail);
        case 2:
          return net.set_down(rail, true);
        default:
          net.heal(rail);
          return net.set_down(rail, false);
      }
    });
    ASSERT_TRUE(status.ok()) << seed << ": " << status.error().message;
    for (int32_t rank : {0, 1}) {
      for (const RailReport& rail : net[rank].rail_reports()) again += rail.frames_sent_again;
    }
  }
  EXPECT_GT(again, 30u) << "the faults must have hit something";
}

TEST(RailsFaults, TheLastRailsEndIsAnErrorThatNamesAllOfThem) {
  SimRails net({{}, {}}, 2);
  Traffic before(net, 2, 1, 10);
  ASSERT_TRUE(before.run([](Rng&) {}).ok());
  net.reset(0);
  ASSERT_TRUE(net.step().ok());
  Message message(0, 1, 1000, 1 << 20, false);
  ASSERT_TRUE(net[0].post_send(message.send).ok());
  net.reset(1);
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = net.step();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kRemoteError);
  const std::regex said(
      "over any rail: sim0: the connection was reset, .* s ago; sim1: the connection was reset, .* s ago");
  EXPECT_TRUE(std::regex_search(status.error().message, said)) << status.error().message;
}

TEST(RailsFaults, ARailThatHealsCarriesAgain) {
  SimRails net({{}, {}}, 2, 1, {.silence_ns = 60'000'000});
  const auto exchange = [&] {
    static uint64_t number = 1 << 20;
    for (int i = 0; i < 20; ++i) {
      Message message(0, 1, ++number, 1 << 20, false);
      ASSERT_TRUE(net[0].post_send(message.send).value());
      ASSERT_TRUE(net[1].post_recv(message.recv).value());
      while (!message.done()) ASSERT_TRUE(net.step().ok());
      ASSERT_TRUE(message.right());
    }
  };
  exchange();
  net.silence(1);
  exchange();
  ASSERT_NE(net[0].rail_reports()[1].now().state, RailState::kUp);
  const uint64_t before = net.carried(1);
  exchange();
  EXPECT_EQ(net.carried(1), before) << "a rail that is silent carries nothing";
  net.heal(1);
  while (net[0].rail_reports()[1].now().state != RailState::kUp) ASSERT_TRUE(net.step().ok());
  exchange();
  exchange();
  EXPECT_GT(net.carried(1), before + (size_t{10} << 20)) << "half of the bytes go over it again";
  EXPECT_EQ(net[0].rail_reports()[1].connections, 2u);
}

// Behind frozen peers an attempt may wait for long before it begins. It keeps its place: neither a first nor a later
// attempt is given up because of that.
TEST(RailsFaults, AnAttemptThatWaitsInLineIsNotGivenUp) {
  SimRails net({{}, {}}, 2, 1, {.silence_ns = 60'000'000});
  const auto wait = [&](int64_t ns) {
    for (const int64_t begin = net.now_ns(); net.now_ns() - begin < ns;) ASSERT_TRUE(net.step().ok());
  };
  const auto connect = [&](uint64_t connections) {
    wait(30'000'000'000);
    EXPECT_EQ(net[0].rail_reports()[1].connections, connections - 1);
    net.stop_line(1, false);
    wait(10'000'000);
    EXPECT_EQ(net[0].rail_reports()[1].connections, connections) << "the attempt that waited has begun";
  };
  net.stop_line(1, true);
  Traffic before(net, 2, 1, 10);
  ASSERT_TRUE(before.run([](Rng&) {}).ok());
  connect(1);
  EXPECT_EQ(net[0].rail_reports()[1].history.size(), 2u) << net[0].rail_reports()[1].now().why;

  net.stop_line(1, true);
  net.reset(1);
  connect(2);
  const std::vector<RailReport> rails = net[0].rail_reports();
  for (const RailChange& change : rails[1].history) EXPECT_EQ(change.why.find("no "), std::string::npos) << change.why;
}

// Its time begins with the attempt.
TEST(RailsFaults, AnAttemptThatHasBegunIsGivenUpInTime) {
  SimRails net({{}, {}}, 2, 1, {.silence_ns = 60'000'000});
  Traffic before(net, 2, 1, 10);
  ASSERT_TRUE(before.run([](Rng&) {}).ok());
  net.reset(1);
  net.stop_line(1, true);
  net.silence(1);
  const auto wait = [&](int64_t ns) {
    for (const int64_t begin = net.now_ns(); net.now_ns() - begin < ns;) ASSERT_TRUE(net.step().ok());
  };
  wait(30'000'000'000);
  EXPECT_NE(net[0].rail_reports()[1].now().why, "no answer to an attempt to connect");
  net.stop_line(1, false);
  wait(1'900'000'000);
  EXPECT_NE(net[0].rail_reports()[1].now().why, "no answer to an attempt to connect");
  wait(600'000'000);
  EXPECT_EQ(net[0].rail_reports()[1].now().why, "no answer to an attempt to connect");
}

// A rank that computes for long, without a helper thread, answers over one rail first when it comes back.
TEST(RailsFaults, ARankThatWasAwayCostsNoRail) {
  SimRails net({{0.1, 20'000}, {0.05, 400'000}}, 2, 1, {.silence_ns = 50'000'000});
  Traffic before(net, 2, 1, 20);
  ASSERT_TRUE(before.run([](Rng&) {}).ok());
  for (const int32_t away : {0, 1, 0, 1}) {
    static uint64_t number = 1 << 20;
    Message message(1 - away, away, ++number, 4 << 20, false);
    ASSERT_TRUE(net[message.to].post_recv(message.recv).value());
    ASSERT_TRUE(net[message.from].post_send(message.send).value());
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(net.step().ok());
    for (const int64_t begin = net.now_ns(); net.now_ns() - begin < 1'000'000'000;) ASSERT_TRUE(net.step(away).ok());
    while (!message.done()) ASSERT_TRUE(net.step().ok());
    EXPECT_TRUE(message.right());
  }
  for (const int32_t rank : {0, 1}) {
    for (const RailReport& rail : net[rank].rail_reports()) EXPECT_EQ(rail.connections, 1u) << rail.history[2].why;
  }
}

// Rails of unlike latencies crawl now and then, as in an overloaded network, so that answers take longer than the
// silence that ends a rail. Each end doubts rails at its own times, but together they never end both: one of them
// decides.
TEST(RailsFaults, RailsThatAnswerLateAreNotAllEnded) {
  constexpr double kRate = 0.01, kCrawl = 0.0002;
  uint64_t losses = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    Rng rng(seed);
    std::vector<SimRailSpec> rails(2);
    for (SimRailSpec& rail : rails) {
      rail.rate = kRate;
      rail.latency_ns = static_cast<int64_t>(1'000'000 + rng.below(60'000'001));
    }
    SimRails net(rails, 2, seed, {.silence_ns = 60'000'000});
    Traffic traffic(net, 2, seed, 60);
    const Status status = traffic.run([&](Rng& random) {
      const size_t change = random.below(20);
      if (change < 4) net.set_rate(change % 2, change < 2 ? kCrawl : kRate);
    });
    ASSERT_TRUE(status.ok()) << seed << ": " << status.error().message;
    const std::vector<RailReport> asking = net[1].rail_reports();
    for (const RailReport& rail : asking) {
      losses += rail.losses;
      for (const RailChange& change : rail.history)
        EXPECT_EQ(change.why.find("nothing was acknowledged for"), std::string::npos)
            << "rank 0 decides; seed " << seed;
    }
  }
  EXPECT_GT(losses, 100u) << "rails must have been doubted";
}

// A rail over which no connection was ever made is none: the end of the other one is the end.
TEST(RailsFaults, ARailThatWasNeverThereKeepsNobodyWaiting) {
  SimRails net({{}, {}}, 2);
  net.silence(1);
  Traffic before(net, 2, 1, 10);
  ASSERT_TRUE(before.run([](Rng&) {}).ok());
  for (const int64_t begin = net.now_ns(); net.now_ns() - begin < 20'000'000'000;) ASSERT_TRUE(net.step().ok());
  Message message(0, 1, 1000, 1 << 20, false);
  ASSERT_TRUE(net[1].post_recv(message.recv).value());
  net.reset(0);
  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = net.step();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("sim1: no "), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace trestle
