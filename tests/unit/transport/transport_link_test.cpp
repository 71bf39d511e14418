// The protocol between two ranks on a tcp connection, without sockets: two Links wired to each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/rng.h"
#include "support/link_end.h"

namespace trestle {
namespace {

constexpr PeerLimits kLimits{1024, 16 * 1024};
constexpr uint32_t kAb = 111;
constexpr uint32_t kBa = 222;

struct Pair {
  BufferPool pool;
  LinkEnd a{kLimits, kBa, kAb, pool};
  LinkEnd b{kLimits, kAb, kBa, pool};

  // Carries at most `most` bytes from one to the other. Returns the number of carried bytes.
  static size_t carry(LinkEnd& from, LinkEnd& to, size_t most, Status& status) {
    std::vector<iovec> vectors(64);
    vectors.resize(from.fill_output(vectors));
    std::vector<std::byte> wire;
    for (const iovec& v : vectors) {
      const auto* data = static_cast<const std::byte*>(v.iov_base);
      wire.insert(wire.end(), data, data + v.iov_len);
    }
    wire.resize(std::min(wire.size(), most));
    from.wrote(wire.size());
    status = to.take(wire);
    return wire.size();
  }
  // Carries bytes until both sides have nothing to send.
  Status settle(uint64_t seed = 0) {
    Rng rng(seed);
    for (size_t moved = 1; moved > 0;) {
      moved = 0;
      for (const bool forth : {true, false}) {
        Status status;
        moved += carry(forth ? a : b, forth ? b : a, seed == 0 ? size_t{1} << 30 : 1 + rng.below(300), status);
        TRY(status);
      }
    }
    return {};
  }
};

struct Send {
  Send(uint64_t number, size_t bytes, std::byte fill = std::byte{7}) : data(bytes, fill), piece{data.data(), bytes} {
    request.tag.operation = number;
    request.pieces = {&piece, 1};
    request.bytes = bytes;
  }
  std::vector<std::byte> data;
  ConstPiece piece;
  SendRequest request;
};
struct Recv {
  Recv(uint64_t number, size_t bytes) : data(bytes), piece{data.data(), bytes} {
    request.tag.operation = number;
    request.pieces = {&piece, 1};
    request.bytes = bytes;
  }
  std::vector<std::byte> data;
  Piece piece;
  RecvRequest request;
};

TEST(PeerProtocol, MessagesCutAnywhereArrive) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair;
    std::deque<Send> sends;
    std::deque<Recv> recvs;
    Rng rng(seed);
    for (uint64_t n = 0; n < 60; ++n) {
      const size_t bytes = rng.below(3000);
      sends.emplace_back(n, bytes, static_cast<std::byte>(n));
      recvs.emplace_back(n, bytes);
      ASSERT_TRUE(pair.a->post_send(sends.back().request).value());
      if (n % 2 == 0) {
        ASSERT_TRUE(pair.b->post_recv(recvs.back().request).value());
      }
    }
    ASSERT_TRUE(pair.settle(seed).ok());
    for (uint64_t n = 1; n < 60; n += 2) ASSERT_TRUE(pair.b->post_recv(recvs[n].request).value());
    ASSERT_TRUE(pair.settle(seed).ok());
    for (uint64_t n = 0; n < 60; ++n) {
      EXPECT_EQ(recvs[n].request.state, RequestState::kDone);
      EXPECT_EQ(sends[n].request.state, RequestState::kDone);
      EXPECT_EQ(recvs[n].data, sends[n].data);
    }
    EXPECT_FALSE(pair.a->awaiting() || pair.b->awaiting());
  }
}

TEST(PeerProtocol, WithoutCreditASmallMessageAsksAndPassesTheOthers) {
  Pair pair;
  std::deque<Send> sends;
  for (uint64_t n = 0; n < 100; ++n) ASSERT_TRUE(pair.a->post_send(sends.emplace_back(n, 1000).request).value());
  ASSERT_TRUE(pair.settle().ok());
  const auto done = [&] {
    return std::count_if(sends.begin(), sends.end(), [](Send& s) { return s.request.state == RequestState::kDone; });
  };
  EXPECT_GT(done(), 0);
  EXPECT_LT(done(), 20) << "the receiver keeps no more than the credit";
  Recv last(99, 1000);
  ASSERT_TRUE(pair.b->post_recv(last.request).value());
  ASSERT_TRUE(pair.settle().ok());
  EXPECT_EQ(last.request.state, RequestState::kDone);
  std::deque<Recv> recvs;
  for (uint64_t n = 0; n < 99; ++n) ASSERT_TRUE(pair.b->post_recv(recvs.emplace_back(n, 1000).request).value());
  ASSERT_TRUE(pair.settle().ok());
  EXPECT_EQ(done(), 100);
  // Credit has returned, so the next message is sent at once.
  Send next(1000, 1000);
  ASSERT_TRUE(pair.a->post_send(next.request).value());
  ASSERT_TRUE(pair.settle().ok());
  EXPECT_EQ(next.request.state, RequestState::kDone);
}

TEST(PeerProtocol, TheOldestClearedMessageGoesFirst) {
  Pair pair;
  std::deque<Send> sends;
  std::deque<Recv> recvs;
  for (const uint64_t n : {5, 3, 9, 1}) {
    ASSERT_TRUE(pair.b->post_recv(recvs.emplace_back(n, 100'000).request).value());
    ASSERT_TRUE(pair.a->post_send(sends.emplace_back(n, 100'000).request).value());
  }
  Status status;
  Pair::carry(pair.b, pair.a, 1 << 30, status);
  ASSERT_TRUE(status.ok());
  std::vector<uint64_t> order;
  for (int i = 0; i < 4; ++i) {
    Pair::carry(pair.a, pair.b, 100'000 + kFrameBytes, status);
    ASSERT_TRUE(status.ok());
    for (const Recv& r : recvs) {
      const uint64_t n = r.request.tag.operation;
      const bool known = std::find(order.begin(), order.end(), n) != order.end();
      if (r.request.state == RequestState::kDone && !known) order.push_back(n);
    }
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 3, 5, 9}));
}

struct Lie {
  const char* what;
  std::vector<Frame> frames;
};

TEST(PeerProtocol, LiesAreErrors) {
  const MessageTag tag{1, 0, 0, 0};
  const Lie kLies[] = {
      {"data that was not cleared", {{FrameType::kData, 0, tag, 0}}},
      {"eager above the limit", {{FrameType::kEager, 0, tag, 1025, 0, 1025}}},
      {"two with one tag", {{FrameType::kEager, 0, tag, 0}, {FrameType::kEager, 0, tag, 0}}},
      {"a part of what must stay whole", {{FrameType::kEager, 0, tag, 10, 0, 5}}},
      {"credit from nowhere", {{FrameType::kCredit, 1, {}, 0}}},
      {"asking for a large one", {{FrameType::kRequest, 0, tag, 5000}}},
      {"asking twice", {{FrameType::kRequest, 0, tag, 5}, {FrameType::kRequest, 0, tag, 5}}},
      {"clearing twice", {{FrameType::kClear, 0, tag, 5}, {FrameType::kClear, 0, tag, 5}}},
      {"a welcome in the middle", {{FrameType::kWelcome, 0, {}, 0}}},
      {"an answer to no goodbye", {{FrameType::kGoodbyeSeen, 0, {}, 0}}},
      {"more after the goodbye", {{FrameType::kGoodbye, 0, {}, 0}, {FrameType::kCredit, 0, {}, 0}}},
  };
  for (const Lie& lie : kLies) {
    BufferPool pool;
    LinkEnd protocol(kLimits, kAb, kBa, pool);
    Status status;
    for (const Frame& frame : lie.frames) {
      std::array<std::byte, kFrameBytes> wire;
      encode_frame(frame, kAb, wire.data());
      if (status.ok()) status = protocol.take(wire);
    }
    EXPECT_FALSE(status.ok()) << lie.what;
  }
  // A peer that ignores the limits is stopped when the credit is used up.
  BufferPool pool;
  LinkEnd protocol(kLimits, kAb, kBa, pool);
  uint64_t accepted = 0;
  for (;; ++accepted) {
    std::array<std::byte, kFrameBytes> wire;
    encode_frame({FrameType::kEager, 0, {accepted, 0, 0, 0}, 0}, kAb, wire.data());
    if (!protocol.take(wire).ok()) break;
  }
  EXPECT_EQ(accepted, kLimits.credit_bytes / kEagerOverhead);
}

TEST(Frame, OnlyItsOwnConnectionReadsIt) {
  std::array<std::byte, kFrameBytes> wire;
  const Frame frame{FrameType::kClear, 17, {1ull << 63 | 5, 6, 7, 8, 0x1234abcdef01}, 9};
  encode_frame(frame, 42, wire.data());
  const Frame back = decode_frame(wire.data(), 42).value();
  EXPECT_EQ(back.type, frame.type);
  EXPECT_EQ(back.credit, frame.credit);
  EXPECT_EQ(back.tag, frame.tag);
  EXPECT_EQ(back.tag.check, frame.tag.check);
  EXPECT_EQ(back.bytes, frame.bytes);
  EXPECT_FALSE(decode_frame(wire.data(), 43).ok());
  for (const size_t at : {0, 1, 4, 5, 6, 7}) {
    auto changed = wire;
    changed[at] ^= std::byte{0x40};
    EXPECT_FALSE(decode_frame(changed.data(), 42).ok()) << at;
  }
  EXPECT_NE(frame_check("job", 1, 2), frame_check("job", 2, 1));
}

TEST(TagMap, KeepsWhatIsInAndForgetsWhatIsOut) {
  TagMap<uint64_t> map;
  std::vector<bool> in(500);
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t n = rng.below(500);
    const MessageTag tag{n / 7, static_cast<uint32_t>(n % 7), 0, n * 4096};
    if (rng.below(2) == 0) {
      EXPECT_EQ(map.insert(tag, n), !in[n]);
      in[n] = true;
    } else {
      uint64_t value = 0;
      ASSERT_EQ(map.take(tag, value), in[n]);
      ASSERT_TRUE(!in[n] || value == n);
      in[n] = false;
    }
    ASSERT_EQ(map.size(), static_cast<size_t>(std::count(in.begin(), in.end(), true)));
  }
}

TEST(TagMap, OfPointersBehavesLikeAMap) {
  TagMap<int*> table;
  std::map<uint64_t, int*> reference;
  std::vector<int> values(300);
  std::mt19937 random(2);
  const auto tag = [](uint64_t i) { return MessageTag{i % 7, static_cast<uint32_t>(i % 3), 0, i * 65536}; };
  for (int round = 0; round < 100'000; ++round) {
    const uint64_t i = random() % values.size();
    const bool known = reference.count(i) != 0;
    switch (random() % 3) {
      case 0:
        ASSERT_EQ(table.insert(tag(i), &values[i]), !known);
        reference[i] = &values[i];
        break;
      case 1:
        ASSERT_EQ(table.take(tag(i)), known ? &values[i] : nullptr);
        reference.erase(i);
        break;
      default:
        ASSERT_EQ(table.get(tag(i)), known ? &values[i] : nullptr);
    }
    ASSERT_EQ(table.size(), reference.size());
  }
}

}  // namespace
}  // namespace trestle
