// How much is spent on measuring rails: it is bounded, whatever the number of peers, and data is divided all the same.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "support/sim_rails.h"
#include "transport/message/probe_budget.h"

namespace trestle {
namespace {

constexpr uint64_t kFree = ProbeBudget::kFreeRows;

// Rows that may begin at this moment.
uint64_t rows_at(ProbeBudget& budget, uint64_t bytes, bool first, int64_t now_ns) {
  uint64_t rows = 0;
  while (rows < 10'000 && budget.begin_row(bytes, first, now_ns)) ++rows;
  return rows;
}

TEST(ProbeBudget, WithoutDataFewRowsAreFree) {
  ProbeBudget budget;
  EXPECT_EQ(rows_at(budget, 0, true, 5 * kSecond), kFree);
  EXPECT_EQ(rows_at(budget, ProbeBudget::kBytesOfFirstRow - 1, true, 6 * kSecond - 1), 0u);
  EXPECT_EQ(rows_at(budget, 0, false, 6 * kSecond), 1u);
  EXPECT_EQ(rows_at(budget, ProbeBudget::kBytesPerRow - 1, false, 9 * kSecond), 3u);
  EXPECT_EQ(rows_at(budget, 0, true, 1000 * kSecond), kFree) << "a long pause saves no more";
}

TEST(ProbeBudget, DataPaysForRowsUpToARate) {
  ProbeBudget budget;
  EXPECT_EQ(rows_at(budget, 0, true, 0), kFree);
  EXPECT_EQ(rows_at(budget, ProbeBudget::kBytesPerRow, false, 0), uint64_t{ProbeBudget::kRowsPerSecond});
  uint64_t rows = 0;
  for (int64_t now_ns = 0; now_ns < 10 * kSecond; now_ns += kSecond / 1000)
    rows += rows_at(budget, ProbeBudget::kBytesOfFirstRow, true, now_ns);
  EXPECT_LE(rows, uint64_t{10 * ProbeBudget::kRowsPerSecond});
  EXPECT_GE(rows, uint64_t{10 * ProbeBudget::kRowsPerSecond - 1});
}

// One message from rank 0 to a peer.
void send_to(SimRails& net, int32_t peer, size_t bytes) {
  static uint64_t number = 0;
  std::vector<std::byte> from(bytes), to(bytes);
  const ConstPiece out{from.data(), bytes, nullptr};
  const Piece in{to.data(), bytes, nullptr};
  SendRequest send;
  RecvRequest recv;
  send.peer = peer;
  recv.peer = 0;
  send.tag.operation = recv.tag.operation = ++number;
  send.pieces = {&out, 1};
  recv.pieces = {&in, 1};
  send.bytes = recv.bytes = bytes;
  ASSERT_TRUE(net[peer].post_recv(recv).value());
  ASSERT_TRUE(net[0].post_send(send).value());
  while (recv.state != RequestState::kDone || send.state != RequestState::kDone) ASSERT_TRUE(net.step().ok());
}

// Of rank 0, over its rail `name` to all peers.
uint64_t sent_over(SimRails& net, const std::string& name) {
  uint64_t sent = 0;
  for (const RailReport& rail : net[0].rail_reports()) sent += rail.name == name ? rail.sent_bytes : 0;
  return sent;
}

constexpr int32_t kPeers = 24;
static_assert(kPeers > ProbeBudget::kFreeRows);

void say_something_to_all(SimRails& net) {
  for (int32_t peer = 1; peer <= kPeers; ++peer) send_to(net, peer, 1);
  for (const int64_t begin = net.now_ns(); net.now_ns() - begin < kSecond / 2;) ASSERT_TRUE(net.step().ok());
}

TEST(Probes, OfManyPeersWithLittleDataAreBounded) {
  SimRails net({{}, {}}, kPeers + 1);
  say_something_to_all(net);
  constexpr uint64_t kProbesOfARow = 2;
  for (const char* const rail : {"sim0", "sim1"})
    EXPECT_LE(sent_over(net, rail), kFree * kProbesOfARow * kProbeBytes + kPeers) << rail;
}

TEST(Probes, MeasureARailToAPeerAsSoonAsThereIsData) {
  SimRails net({{}, {0.05}}, kPeers + 1);
  say_something_to_all(net);
  for (int32_t peer = 1; peer <= kPeers; ++peer) send_to(net, peer, 4 << 20);
  for (const RailReport& rail : net[0].rail_reports()) {
    EXPECT_GT(rail.goodput, 0u) << rail.name << " to " << rail.peer;
    EXPECT_GT(rail.sent_bytes, uint64_t{100'000}) << rail.name << " to " << rail.peer;
  }
}

// Whether the peer answers at all is asked now and then over the rail that works, not all the time.
TEST(Probes, BesideASilentRailAreFew) {
  SimRails net({{}, {}}, 2, 1, {.silence_ns = 60'000'000});
  for (int i = 0; i < 4; ++i) send_to(net, 1, 4 << 20);
  net.silence(1);
  const uint64_t before = sent_over(net, "sim0");
  send_to(net, 1, 4 << 20);
  EXPECT_EQ(net[0].rail_reports()[1].losses, 1u);
  EXPECT_LE(sent_over(net, "sim0") - before, (4 << 20) + 32 * kProbeBytes);
}

// One pair's doubt lets all others ask whether the rail answers. They ask with little.
TEST(Probes, OfARailThatOnePairDoubtsAreFew) {
  SimRails net({{}, {}}, kPeers + 1, 1, {.silence_ns = kSecond});
  say_something_to_all(net);
  for (int i = 0; i < 4; ++i) send_to(net, 1, 4 << 20);
  net.silence(1, 1);
  uint64_t before = 0, after = 0;
  const auto sent_to_others = [&net] {
    uint64_t sent = 0;
    for (const RailReport& rail : net[0].rail_reports()) sent += rail.peer == 1 ? 0 : rail.sent_bytes;
    return sent;
  };
  before = sent_to_others();
  send_to(net, 1, 4 << 20);
  after = sent_to_others();
  EXPECT_EQ(net[0].rail_reports()[1].losses, 1u);
  EXPECT_GT(after, before);
  EXPECT_LE(after - before, kPeers * kProbeBytes / 2);
}

}  // namespace
}  // namespace trestle
