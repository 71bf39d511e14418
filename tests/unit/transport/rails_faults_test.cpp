// Messages over several simulated rails: everything arrives once, in the right memory, whatever happens to the rails as
// long as one is left.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "base/rng.h"
#include "support/sim_rails.h"

namespace trestle {
namespace {

std::byte content(uint64_t number, size_t at) {
  return static_cast<std::byte>((number * 131 + at * 7 + (at >> 8) * 13) & 0xff);
}

// A message in pieces with guard bytes around them, both ends.
struct Message {
  Message(int32_t from, int32_t to, uint64_t number, size_t bytes, bool view) : from(from), to(to), number(number) {
    sent.resize(bytes);
    for (size_t i = 0; i < bytes; ++i) sent[i] = content(number, i);
    received.assign(bytes + 2, std::byte{0xee});
    cut(bytes);
    send.peer = to;
    recv.peer = from;
    send.tag.operation = recv.tag.operation = number;
    send.bytes = recv.bytes = bytes;
    send.pieces = out;
    if (!view) recv.pieces = in;
    is_view = view;
  }
  void cut(size_t bytes) {
    const size_t third = bytes / 3;
    out = {{sent.data(), third, nullptr}, {sent.data() + third, bytes - third, nullptr}};
    in = {{received.data() + 1, bytes - third, nullptr}, {received.data() + 1 + bytes - third, third, nullptr}};
  }
  bool done() const { return send.state == RequestState::kDone && recv.state == RequestState::kDone; }
  bool right() const {
    std::vector<std::byte> data;
    if (is_view) {
      for (const ConstPiece& piece : recv.view) data.insert(data.end(), piece.data, piece.data + piece.bytes);
    } else {
      if (received.front() != std::byte{0xee} || received.back() != std::byte{0xee}) return false;
      data.assign(received.begin() + 1, received.end() - 1);
    }
    if (data.size() != sent.size()) return false;
    for (size_t i = 0; i < data.size(); ++i) {
      if (data[i] != content(number, i)) return false;
    }
    return true;
  }

  int32_t from, to;
  uint64_t number;
  std::vector<std::byte> sent, received;
  std::vector<ConstPiece> out;
  std::vector<Piece> in;
  SendRequest send;
  RecvRequest recv;
  bool is_view = false, send_posted = false, recv_posted = false;
};

size_t random_size(Rng& rng) {
  switch (rng.below(5)) {
    case 0:
      return rng.below(3);
    case 1:
      return rng.below(32 * 1024 + 1);
    case 2:
      return 32 * 1024 + rng.below(64 * 1024);
    default:
      return rng.below(1 << 20);
  }
}

// Random messages between all pairs of ranks, posted in random order; at most `open` at a time.
class Traffic {
 public:
  Traffic(SimRails& net, int32_t ranks, uint64_t seed, size_t messages) : net_(net), rng_(seed) {
    for (uint64_t number = 0; number < messages; ++number) {
      const auto from = static_cast<int32_t>(rng_.below(static_cast<uint64_t>(ranks)));
      const auto to = static_cast<int32_t>((from + 1 + rng_.below(static_cast<uint64_t>(ranks - 1))) % ranks);
      all_.emplace_back(from, to, number, random_size(rng_), rng_.below(4) == 0);
    }
  }
  // `event` runs now and then.
  Status run(const std::function<void(Rng&)>& event) {
    for (size_t steps = 0; done_ < all_.size(); ++steps) {
      if (steps > 3'000'000) return Error{Code::kInternalError, "the messages do not arrive: " + std::to_string(done_)};
      TRY(post());
      TRY(net_.step());
      TRY(finish());
      if (rng_.below(40) == 0) event(rng_);
    }
    return {};
  }

 private:
  Status post() {
    const size_t end = std::min(all_.size(), done_ + 12);
    for (size_t i = done_; i < end; ++i) {
      Message& message = all_[i];
      if (!message.send_posted && rng_.below(3) == 0)
        message.send_posted = TRY(net_[message.from].post_send(message.send));
      if (!message.recv_posted && rng_.below(3) == 0)
        message.recv_posted = TRY(net_[message.to].post_recv(message.recv));
    }
    return {};
  }
  Status finish() {
    for (; done_ < all_.size() && all_[done_].done(); ++done_) {
      Message& message = all_[done_];
      if (!message.right()) return Error{Code::kInternalError, "message " + std::to_string(done_) + " is wrong"};
      net_[message.to].release(message.recv);
    }
    return {};
  }

  SimRails& net_;
  Rng rng_;
  std::deque<Message> all_;
  size_t done_ = 0;
};

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
  for (uint64_t seed = 1; seed <= 150; ++seed) {
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
  EXPECT_GT(again, 100u) << "the faults must have hit something";
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

// As in a collective: each message waits for the one before, which other ranks have exchanged. Only the first pair has
// data under way when the rail becomes silent.
TEST(RailsFaults, PairsThatWaitForEachOtherLeaveASilentRailTogether) {
  constexpr int64_t kSilenceNs = 3'000'000'000;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimRails net({{}, {}}, 4, seed, {.silence_ns = kSilenceNs});
    Traffic before(net, 4, seed, 200);
    ASSERT_TRUE(before.run([](Rng&) {}).ok());
    const int64_t begin_ns = net.now_ns();
    net.silence(0);
    for (uint64_t number = 0; number < 24; ++number) {
      const auto from = static_cast<int32_t>(number % 4);
      Message message(from, static_cast<int32_t>((from + 1 + number / 4 % 3) % 4), 1000 + number, 256 << 10, false);
      ASSERT_TRUE(net[message.from].post_send(message.send).value());
      ASSERT_TRUE(net[message.to].post_recv(message.recv).value());
      while (!message.done()) ASSERT_TRUE(net.step().ok());
      ASSERT_TRUE(message.right());
    }
    EXPECT_LT(net.now_ns() - begin_ns, kSilenceNs) << seed;
  }
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
        EXPECT_EQ(change.why.find("nothing was acknowledged"), std::string::npos) << "rank 0 decides; seed " << seed;
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
