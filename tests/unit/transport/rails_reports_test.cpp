// What is told of rails: numbers that agree between both ends, changes of state in their order, from any thread.
#include <gtest/gtest.h>

#include <atomic>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "support/sim_rails.h"

namespace trestle {
namespace {

constexpr size_t kMessage = size_t{1} << 20;

// One message of kMessage bytes from `from` to the other one of two ranks.
void exchange(SimRails& net, int32_t from) {
  static uint64_t number = 0;
  static std::vector<std::byte> sent(kMessage), received(kMessage);
  const ConstPiece out{sent.data(), kMessage, nullptr};
  const Piece in{received.data(), kMessage, nullptr};
  SendRequest send;
  RecvRequest recv;
  send.peer = 1 - from;
  recv.peer = from;
  send.tag.operation = recv.tag.operation = ++number;
  send.pieces = {&out, 1};
  recv.pieces = {&in, 1};
  send.bytes = recv.bytes = kMessage;
  ASSERT_TRUE(net[1 - from].post_recv(recv).value());
  ASSERT_TRUE(net[from].post_send(send).value());
  while (send.state != RequestState::kDone || recv.state != RequestState::kDone) ASSERT_TRUE(net.step().ok());
}

void exchange(SimRails& net) {
  for (int i = 0; i < 10; ++i) exchange(net, i % 2);
}

// Until both ranks know what has come of everything.
void settle(SimRails& net) {
  const auto settled = [&net](int32_t rank) {
    bool all = true;
    for (const RailReport& rail : net[rank].rail_reports()) all = all && rail.queued_bytes == 0;
    return all;
  };
  while (!settled(0) || !settled(1)) ASSERT_TRUE(net.step().ok());
}

void until(SimRails& net, size_t rail, RailState state) {
  const auto is = [&](int32_t rank) { return net[rank].rail_reports()[rail].now().state == state; };
  while (!is(0) || !is(1)) ASSERT_TRUE(net.step().ok());
}

std::vector<RailState> states(const RailReport& rail) {
  std::vector<RailState> all;
  for (const RailChange& change : rail.history) all.push_back(change.state);
  return all;
}

void expect_in_order(const RailReport& rail) {
  for (size_t i = 1; i < rail.history.size(); ++i) EXPECT_LE(rail.history[i - 1].at_ns, rail.history[i].at_ns);
}

TEST(RailsReports, BothEndsCountTheSame) {
  SimRails net({{0.125, 50'000}, {0.0625, 50'000}}, 2);
  EXPECT_TRUE(net[0].rail_reports().empty()) << "nothing was sent so far";
  exchange(net);
  settle(net);
  for (const int32_t rank : {0, 1}) {
    const std::vector<RailReport> mine = net[rank].rail_reports();
    const std::vector<RailReport> theirs = net[1 - rank].rail_reports();
    ASSERT_EQ(mine.size(), 2u);
    uint64_t sent = 0;
    uint32_t shares = 0;
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(mine[i].peer, 1 - rank);
      EXPECT_EQ(mine[i].name, "sim" + std::to_string(i));
      EXPECT_EQ(mine[i].rails, 2u);
      EXPECT_EQ(mine[i].acknowledged_bytes, mine[i].sent_bytes);
      EXPECT_EQ(mine[i].sent_bytes, theirs[i].received_bytes);
      EXPECT_GT(mine[i].goodput, 0u);
      EXPECT_EQ(mine[i].connections, 1u);
      EXPECT_EQ(mine[i].losses, 0u);
      EXPECT_EQ(mine[i].frames_sent_again, 0u);
      EXPECT_EQ(states(mine[i]), (std::vector{RailState::kConnecting, RailState::kUp}));
      EXPECT_EQ(mine[i].now().why, "");
      expect_in_order(mine[i]);
      sent += mine[i].sent_bytes;
      shares += mine[i].share_permille;
    }
    EXPECT_GE(sent, 5 * kMessage) << "and what measures the rails";
    EXPECT_NEAR(shares, 1000, 1);
    EXPECT_GT(mine[0].share_permille, mine[1].share_permille);
  }
}

TEST(RailsReports, OfARailThatIsLostAndHealed) {
  SimRails net({{}, {}}, 2, 1, {.silence_ns = 60'000'000});
  exchange(net);
  net.silence(1);
  exchange(net);
  until(net, 1, RailState::kDown);
  for (const int32_t rank : {0, 1}) {
    const RailReport rail = net[rank].rail_reports()[1];
    EXPECT_EQ(states(rail),
              (std::vector{RailState::kConnecting, RailState::kUp, RailState::kEnding, RailState::kDown}));
    EXPECT_NE(rail.now().why, "");
    EXPECT_EQ(rail.losses, 1u);
    EXPECT_EQ(rail.goodput, 0u) << "not up";
    EXPECT_EQ(rail.queued_bytes, 0u);
    expect_in_order(rail);
  }
  const std::string why[2] = {net[0].rail_reports()[1].now().why, net[1].rail_reports()[1].now().why};
  const std::regex silent("nothing was acknowledged (for [0-9]+ ms|to the other side)");
  EXPECT_TRUE(std::regex_match(why[0], silent) || std::regex_match(why[1], silent)) << why[0] << "; " << why[1];
  net.heal(1);
  until(net, 1, RailState::kUp);
  exchange(net);
  settle(net);
  uint64_t again = 0;
  for (const int32_t rank : {0, 1}) {
    const RailReport rail = net[rank].rail_reports()[1];
    EXPECT_EQ(rail.connections, 2u);
    EXPECT_EQ(rail.losses, 1u);
    EXPECT_EQ(rail.history.size(), 5u);
    EXPECT_EQ(rail.now().why, "");
    EXPECT_EQ(rail.history[2].why, why[rank]) << "attempts that fail do not hide the cause";
    EXPECT_EQ(rail.acknowledged_bytes, net[1 - rank].rail_reports()[1].received_bytes);
    again += rail.frames_sent_again;
    EXPECT_EQ(net[rank].rail_reports()[0].losses, 0u);
  }
  EXPECT_GT(again, 0u);
}

TEST(RailsReports, KeepTheLastChanges) {
  SimRails net({{}, {}}, 2);
  exchange(net);
  until(net, 1, RailState::kUp);
  for (int i = 0; i < 5; ++i) {
    net.reset(1);
    until(net, 1, RailState::kDown);
    until(net, 1, RailState::kUp);
  }
  for (const int32_t rank : {0, 1}) {
    const RailReport rail = net[rank].rail_reports()[1];
    EXPECT_EQ(rail.connections, 6u);
    EXPECT_EQ(rail.losses, 5u);
    ASSERT_EQ(rail.history.size(), kRailHistory);
    EXPECT_EQ(rail.now().state, RailState::kUp);
    EXPECT_EQ(rail.history.front().state, RailState::kDown);
    expect_in_order(rail);
  }
}

TEST(RailsReports, AttemptsThatFailAreNoChanges) {
  SimRails net({{}, {}}, 2);
  net.silence(1);
  exchange(net);
  for (const int64_t begin = net.now_ns(); net.now_ns() - begin < 60'000'000'000;) ASSERT_TRUE(net.step().ok());
  const RailReport rail = net[0].rail_reports()[1];
  EXPECT_EQ(states(rail), (std::vector{RailState::kConnecting, RailState::kDown}));
  EXPECT_NE(rail.now().why, "");
  EXPECT_EQ(rail.connections, 0u);
  EXPECT_EQ(rail.losses, 0u);
  EXPECT_EQ(rail.sent_bytes, 0u);
  EXPECT_EQ(rail.share_permille, 0u);
  EXPECT_EQ(net[0].rail_reports()[0].share_permille, 1000u);
}

TEST(RailsReports, OfPairsWithOneRailHaveWhatWasSentAndReceived) {
  SimRails net({{}}, 2);
  exchange(net, 0);
  exchange(net, 0);
  exchange(net, 1);
  for (const int32_t rank : {0, 1}) {
    const std::vector<RailReport> rails = net[rank].rail_reports();
    ASSERT_EQ(rails.size(), 1u);
    EXPECT_EQ(rails[0].name, "sim0");
    EXPECT_EQ(rails[0].rails, 1u);
    EXPECT_EQ(rails[0].sent_bytes, (rank == 0 ? 2 : 1) * kMessage);
    EXPECT_EQ(rails[0].received_bytes, (rank == 0 ? 1 : 2) * kMessage);
    EXPECT_EQ(rails[0].acknowledged_bytes, 0u);
    EXPECT_EQ(rails[0].queued_bytes, 0u);
    EXPECT_EQ(rails[0].goodput, 0u);
    EXPECT_EQ(rails[0].share_permille, 1000u);
    EXPECT_EQ(states(rails[0]), (std::vector{RailState::kConnecting, RailState::kUp}));
  }
}

TEST(RailsReports, OfTheOnlyRailsLossStayAfterTheEnd) {
  SimRails net({{}}, 2);
  exchange(net, 0);
  net.reset(0);
  EXPECT_FALSE(net.step().ok());
  net[0].close(0);
  const RailReport lost = net[0].rail_reports()[0];
  EXPECT_EQ(states(lost), (std::vector{RailState::kConnecting, RailState::kUp, RailState::kDown}));
  EXPECT_EQ(lost.now().why, "the connection was reset");
  EXPECT_EQ(lost.losses, 1u);
  EXPECT_EQ(lost.sent_bytes, kMessage);
}

TEST(RailsReports, AtTheEndAllRailsAreDown) {
  for (const size_t count : {1u, 2u}) {
    SimRails net(std::vector<SimRailSpec>(count), 2);
    exchange(net);
    net[0].close(0);
    for (const RailReport& rail : net[0].rail_reports()) {
      EXPECT_EQ(rail.now().state, RailState::kDown);
      EXPECT_EQ(rail.now().why, "the communicator has ended");
      EXPECT_EQ(rail.losses, 0u);
      EXPECT_EQ(rail.goodput, 0u);
    }
  }
}

TEST(RailsReports, CanBeReadWhileRailsCarryAndFail) {
  SimRails net({{}, {}, {}}, 2, 1, {.silence_ns = 60'000'000});
  std::atomic<bool> done = false;
  std::atomic<uint64_t> read = 0;
  std::thread reader([&] {
    while (!done) {
      for (const int32_t rank : {0, 1}) {
        for (const RailReport& rail : net[rank].rail_reports()) {
          EXPECT_LE(rail.acknowledged_bytes, rail.sent_bytes);
          EXPECT_LE(rail.losses, rail.connections);
          EXPECT_LE(rail.history.size(), kRailHistory);
          expect_in_order(rail);
          ++read;
        }
      }
    }
  });
  for (int i = 0; i < 20 || read < 1000; ++i) {
    net.reset(1 + static_cast<size_t>(i) % 2);
    exchange(net);
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace trestle
