// A link whose connections are cut: wherever that happens, every frame comes once and in order.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>

#include "control_mesh/control_link.h"
#include "control_mesh/move_record.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

constexpr size_t kAll = SIZE_MAX;
constexpr size_t kHeader = 24;

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    near = UniqueFd(fds[0]);
    far = UniqueFd(fds[1]);
  }
  UniqueFd near;
  UniqueFd far;
};

// Two ends of a link, and between them a wire that carries as many bytes as the test lets through.
class Ends {
 public:
  Ends() {
    for (ControlLink& end : end) end.keep_frames();
    connect();
  }

  // The next connection begins.
  void connect() {
    Pair one;
    Pair other;
    wire_[0] = std::move(one.far);
    wire_[1] = std::move(other.far);
    UniqueFd sockets[2] = {std::move(one.near), std::move(other.near)};
    for (int i : {0, 1}) {
      if (!end[i].open()) end[i].part();
    }
    for (int i : {0, 1}) EXPECT_TRUE(end[i].resume(std::move(sockets[i]), end[1 - i].came()));
  }
  void cut() {
    for (ControlLink& one : end) one.part();
  }

  // Carries up to `most` bytes from end i to the other one, which reads them. Returns how many there were.
  size_t carry(int i, size_t most) {
    size_t carried = 0;
    std::vector<std::byte> bytes(4096);
    while (carried < most) {
      end[i].flush();
      const auto got = receive_bytes(wire_[i].get(), std::span(bytes).first(std::min(bytes.size(), most - carried)));
      if (!got.ok() || got.value() == 0 || got.value() == kEndOfStream) break;
      const auto sent = send_bytes(wire_[1 - i].get(), std::span(bytes).first(got.value()));
      EXPECT_EQ(sent.value(), got.value());
      carried += got.value();
      std::string reason;
      EXPECT_EQ(end[1 - i].read(came[1 - i], reason), ControlLink::Reading::kOpen) << reason;
    }
    return carried;
  }

  // Sends a frame from end i that says its number.
  void send(int i, size_t bytes = 0) {
    ControlFrame frame;
    frame.kind = ControlKind::kLetter;
    frame.seq = ++sent[i];
    frame.payload.assign(bytes, static_cast<char>('a' + frame.seq % 26));
    end[i].send(frame);
  }

  void expect_all_came() {
    for (int i : {0, 1}) {
      uint64_t next = 0;
      for (const ControlFrame& frame : came[1 - i]) {
        if (frame.kind != ControlKind::kLetter) continue;
        ASSERT_EQ(frame.seq, ++next);
        const auto right = static_cast<char>('a' + next % 26);
        EXPECT_TRUE(std::all_of(frame.payload.begin(), frame.payload.end(), [&](char c) { return c == right; }));
      }
      EXPECT_EQ(next, sent[i]);
      EXPECT_EQ(end[1 - i].came(), sent[i]);
    }
  }

  ControlLink end[2] = {{1, UniqueFd(), 1 << 20}, {0, UniqueFd(), 1 << 20}};
  std::vector<ControlFrame> came[2];
  uint64_t sent[2] = {0, 0};

 private:
  UniqueFd wire_[2];
};

TEST(ControlLink, LosesNothingWhereverItIsCut) {
  std::minstd_rand random(7);
  constexpr size_t kLength = 3 * kHeader + 0 + 5 + 40;
  for (size_t cut = 0; cut <= kLength; ++cut) {
    SCOPED_TRACE(testing::Message() << "cut behind byte " << cut);
    Ends ends;
    for (int i : {0, 1}) {
      for (const size_t bytes : {0, 5, 40}) ends.send(i, bytes);
    }
    EXPECT_EQ(ends.carry(0, cut), cut);
    (void)ends.carry(1, random() % (kLength + 1));
    ends.cut();
    ends.send(0, 3);  // kept until there is a connection
    ends.connect();
    for (int i : {0, 1}) (void)ends.carry(i, kAll);
    ends.expect_all_came();
  }
}

TEST(ControlLink, LosesNothingInManyCuts) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::minstd_rand random(seed);
    Ends ends;
    for (int step = 0; step < 400; ++step) {
      const int i = static_cast<int>(random() % 2);
      switch (random() % 8) {
        case 0:
          ends.cut();
          if (random() % 2 == 0) ends.send(i, random() % 300);
          ends.connect();
          break;
        case 1:
          ends.end[i].send(ControlFrame{});
          break;
        case 2:
        case 3:
        case 4:
          ends.send(i, random() % 9000);
          break;
        default:
          (void)ends.carry(i, random() % 20000);
      }
    }
    for (int i : {0, 1}) (void)ends.carry(i, kAll);
    ends.expect_all_came();
  }
}

// Only one end may know that the connection is over; the other one learns the count when it gets the next one.
TEST(ControlLink, AcknowledgedFramesAreNotSentAgain) {
  Ends ends;
  for (int k = 0; k < 3; ++k) ends.send(0, 100);
  (void)ends.carry(0, kAll);
  ends.end[1].send(ControlFrame{});
  (void)ends.carry(1, kAll);
  ends.cut();
  ends.connect();
  EXPECT_EQ(ends.carry(0, kAll), 0u);
  ends.expect_all_came();
}

TEST(ControlLink, AcknowledgesSoonWhatIsMuchOrTheLast) {
  Ends ends;
  ends.send(0);
  (void)ends.carry(0, kAll);
  EXPECT_FALSE(ends.end[1].owes_ack());
  ends.send(0, 300 << 10);
  (void)ends.carry(0, kAll);
  EXPECT_TRUE(ends.end[1].owes_ack());
  ControlFrame ack;
  ack.kind = ControlKind::kAck;
  ends.end[1].send(ack);
  EXPECT_FALSE(ends.end[1].owes_ack());
  for (int k = 0; k < 64; ++k) ends.send(0);
  (void)ends.carry(0, kAll);
  EXPECT_TRUE(ends.end[1].owes_ack());
  ends.end[1].send(ack);
  ControlFrame bye;
  bye.kind = ControlKind::kBye;
  ends.end[0].send(bye);
  (void)ends.carry(0, kAll);
  EXPECT_TRUE(ends.end[1].owes_ack());
}

TEST(ControlLink, RefusesCountsThatCannotBe) {
  Ends ends;
  ends.send(0);
  ends.send(0);
  (void)ends.carry(0, kAll);
  ends.end[1].send(ControlFrame{});  // acknowledges both
  (void)ends.carry(1, kAll);
  ends.cut();
  for (const uint64_t came : {uint64_t{1}, uint64_t{3}}) EXPECT_FALSE(ends.end[0].resume(Pair().near, came));
  EXPECT_TRUE(ends.end[0].away());
  EXPECT_TRUE(ends.end[0].resume(Pair().near, 2));
}

TEST(ControlLink, KeepsAgainOnceThePeerHasAll) {
  Ends ends;
  constexpr size_t kFrame = size_t{1} << 20;
  for (size_t bytes = 0; bytes <= ControlLink::kMostKeptBytes; bytes += kFrame) ends.send(0, kFrame);
  EXPECT_FALSE(ends.end[0].keeps_any());
  (void)ends.carry(0, kAll);
  ends.send(0);
  EXPECT_FALSE(ends.end[0].keeps_any());
  (void)ends.carry(0, kAll);
  ends.end[1].send(ControlFrame{});  // acknowledges all
  (void)ends.carry(1, kAll);
  ends.send(0);
  ends.cut();
  ends.connect();
  (void)ends.carry(0, kAll);
  ends.expect_all_came();
}

TEST(ControlLink, KeepsNothingWhereItMayNotMove) {
  Pair pair;
  ControlLink link(1, std::move(pair.near), 1 << 20);
  ControlFrame frame;
  frame.kind = ControlKind::kLetter;
  link.send(frame);
  link.part();
  EXPECT_FALSE(link.resume(Pair().near, 0)) << "the frame is gone";
}

TEST(ControlLink, IsMalformedWhereMoreIsAcknowledgedThanWasSent) {
  Pair pair;
  ControlLink link(1, std::move(pair.near), 1 << 20);
  std::string heartbeat(kHeader, '\0');
  heartbeat[4] = 1;
  heartbeat[16] = 1;
  ASSERT_TRUE(send_bytes(pair.far.get(), std::as_bytes(std::span(heartbeat))).ok());
  std::vector<ControlFrame> frames;
  std::string reason;
  EXPECT_EQ(link.read(frames, reason), ControlLink::Reading::kMalformed);
}

TEST(MoveRecord, IsReadBackAndNothingElseIsRead) {
  const MoveRecord record{MoveRecord::Kind::kAsk, true, 5, 77, uint64_t{1} << 40};
  const std::string bytes = encode(record);
  ASSERT_EQ(bytes.size(), kMoveRecordBytes);
  EXPECT_EQ(decode_move_record(bytes), record);
  EXPECT_EQ(decode_move_record(bytes.substr(1)), std::nullopt);
  EXPECT_EQ(decode_move_record(bytes + "x"), std::nullopt);
  for (const size_t at : {size_t{0}, size_t{1}, size_t{3}}) {  // kind, out, zero
    std::string wrong = bytes;
    wrong[at] = 9;
    EXPECT_EQ(decode_move_record(wrong), std::nullopt) << at;
  }
}

}  // namespace
}  // namespace trestle
