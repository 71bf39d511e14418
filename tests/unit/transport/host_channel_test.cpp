// Channels that share the sockets of a rank: each hears its own frames, whichever of them polls; each ends for itself;
// a peer that dies is missed by those that use it.
#include "transport/shm/host_channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/shm/host_streams.h"

namespace trestle {
namespace host_channel_test {
namespace {

struct Heard : HostChannelEvents {
  Status on_ready(int32_t peer) override {
    ready.push_back(peer);
    return {};
  }
  Status on_frame(int32_t peer, const HostFrame& frame, UniqueFd fd) override {
    frames.push_back({peer, frame.id, static_cast<bool>(fd)});
    return {};
  }
  struct Frame {
    int32_t peer;
    uint64_t id;
    bool has_fd;
    bool operator==(const Frame&) const = default;
  };
  std::vector<int32_t> ready;
  std::vector<Frame> frames;
};

// Both ranks are in this thread. Rank r is rank 2 - r of the root.
struct Ranks : testing::Test {
  struct End {
    std::unique_ptr<Heard> heard = std::make_unique<Heard>();
    std::unique_ptr<HostChannel> channel;
    int rung = 0;
  };
  struct Pair {
    End end[2];
  };

  static HostKin kin_of(int32_t rank) {
    auto kin = root_kin({2 - rank, 3, "channels test", std::vector<std::byte>(32, std::byte{5})});
    kin.ranks = {2, 1};
    return kin;
  }
  void open(Pair& pair, int rank, const std::string& name) {
    End& end = pair.end[rank];
    end.channel = HostChannel::open(kin_[rank], name, rank, *end.heard).value();
    end.channel->on_arrival([&end] { ++end.rung; });
  }
  static void introduce(Pair& pair) {
    const std::vector<std::string> addresses{pair.end[0].channel->address(), pair.end[1].channel->address()};
    for (End& end : pair.end) end.channel->set_peers(addresses, {"rank 0 (here)", "rank 1 (here)"});
  }
  void make(Pair& pair, const std::string& name) {
    for (const int rank : {0, 1}) open(pair, rank, name);
    introduce(pair);
  }
  static void until(std::initializer_list<HostChannel*> polled, const std::function<bool()>& done) {
    while (!done()) {
      for (HostChannel* channel : polled) ASSERT_TRUE(channel->poll().ok());
    }
  }
  void connect(Pair& pair) {
    for (const int rank : {0, 1}) ASSERT_TRUE(pair.end[rank].channel->want(1 - rank).ok());
    until({pair.end[0].channel.get(), pair.end[1].channel.get()},
          [&] { return pair.end[0].channel->ready(1) && pair.end[1].channel->ready(0); });
  }
  static std::string failure_of(HostChannel& channel) {
    for (;;) {
      const Result<bool> polled = channel.poll();
      if (!polled.ok()) return polled.error().message;
    }
  }

  HostKin kin_[2] = {kin_of(0), kin_of(1)};
  Pair a_, b_;
};

TEST_F(Ranks, HearWhatAnotherChannelTakesIn) {
  make(a_, "a");
  make(b_, "b");
  connect(a_);
  ASSERT_TRUE(b_.end[0].channel->want(1).ok());
  EXPECT_TRUE(b_.end[0].channel->ready(1)) << "the ranks are connected";
  EXPECT_EQ(b_.end[0].heard->ready, std::vector<int32_t>{1});
  const UniqueFd file(::memfd_create("passed", MFD_CLOEXEC));
  ASSERT_TRUE(b_.end[0].channel->send(1, {.kind = HostFrameKind::kParcel, .id = 7}, file.get()).value());
  until({a_.end[1].channel.get()}, [&] { return b_.end[1].rung != 0; });
  EXPECT_TRUE(a_.end[1].heard->frames.empty());
  EXPECT_TRUE(b_.end[1].channel->wants_poll());
  ASSERT_TRUE(b_.end[1].channel->poll().ok());
  EXPECT_EQ(b_.end[1].heard->frames, (std::vector<Heard::Frame>{{0, 7, true}}));
  EXPECT_FALSE(b_.end[1].channel->wants_poll());
}

TEST_F(Ranks, AreToldThatAChannelHasEndedAlready) {
  make(a_, "a");
  make(b_, "b");
  b_.end[1].channel->close(0);
  connect(a_);
  ASSERT_TRUE(b_.end[0].channel->want(1).ok());
  ASSERT_TRUE(b_.end[0].channel->send(1, {.kind = HostFrameKind::kParcel}, -1).value());
  until({a_.end[0].channel.get(), a_.end[1].channel.get(), b_.end[0].channel.get()},
        [&] { return b_.end[0].channel->left(1); });
  EXPECT_FALSE(a_.end[0].channel->left(1));
}

TEST_F(Ranks, MissWhomTheyUse) {
  Pair c;
  make(a_, "a");
  make(b_, "b");
  make(c, "c");
  connect(a_);
  connect(b_);
  for (Pair* pair : {&a_, &b_, &c}) pair->end[1].channel.reset();
  for (const Pair* pair : {&a_, &b_}) {
    const std::string sentence = failure_of(*pair->end[0].channel);
    EXPECT_NE(sentence.find("rank 1 (here) died"), std::string::npos) << sentence;
  }
  EXPECT_TRUE(c.end[0].channel->poll().ok());
  const Status wanted = c.end[0].channel->want(1);
  ASSERT_FALSE(wanted.ok());
  EXPECT_NE(wanted.error().message.find("rank 1 (here) died"), std::string::npos) << wanted.error().message;
}

TEST_F(Ranks, MeetAgainAtNewSockets) {
  for (int round = 0; round < 3; ++round) {
    make(a_, "round " + std::to_string(round));
    connect(a_);
    ASSERT_TRUE(a_.end[0].channel->send(1, {.kind = HostFrameKind::kParcel, .id = 3}, -1).value());
    until({a_.end[1].channel.get()}, [&] { return !a_.end[1].heard->frames.empty(); });
    a_.end[1].heard->frames.clear();
    // The other one notices only when it connects again.
    a_.end[1].channel->close(0);
    if (round == 1) until({a_.end[0].channel.get()}, [&] { return a_.end[0].channel->left(1); });
    if (round != 1) continue;
    a_.end[0].channel->close(0);
  }
}

// More than the sockets take, both ways, read slowly; and its end.
TEST_F(Ranks, StreamsBringAllBytes) {
  std::unique_ptr<HostStreams> ends[2];
  std::vector<std::string> addresses;
  for (const int rank : {0, 1}) {
    ends[rank] = HostStreams::open(kin_[rank], "streams", rank).value();
    addresses.push_back(ends[rank]->address());
  }
  for (const int rank : {0, 1}) ASSERT_TRUE(ends[rank]->connect({1 - rank}, addresses, {}).ok());
  std::vector<std::byte> sent(3'000'000);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  size_t gone[2][2] = {};
  std::vector<std::byte> came[2][2];
  const auto all = [&] {
    for (auto& end : came) {
      for (auto& stream : end) {
        if (stream.size() != sent.size()) return false;
      }
    }
    return true;
  };
  std::array<std::byte, 1000> some;
  while (!all()) {
    for (const int rank : {0, 1}) {
      ASSERT_TRUE(ends[rank]->poll().ok());
      for (const uint64_t stream : {0, 1}) {
        size_t& at = gone[rank][stream];
        if (at < sent.size()) at += ends[rank]->send(1 - rank, stream, std::span(sent).subspan(at)).value();
        const size_t got = ends[rank]->receive(1 - rank, stream, some);
        ASSERT_NE(got, kEndOfStream);
        came[rank][stream].insert(came[rank][stream].end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(got));
      }
    }
  }
  for (auto& end : came) {
    for (auto& stream : end) EXPECT_EQ(stream, sent);
  }
  ASSERT_EQ(ends[0]->send(1, 5, std::span(sent).first(10)).value(), 10u);
  ends[0]->close(0);
  size_t last = 0;
  while (last == 0) {
    ASSERT_TRUE(ends[1]->poll().ok());
    last = ends[1]->receive(0, 5, some);
  }
  EXPECT_EQ(last, 10u);
  while (ends[1]->receive(0, 5, some) == 0) ASSERT_TRUE(ends[1]->poll().ok());
  EXPECT_EQ(ends[1]->receive(0, 5, some), kEndOfStream);
}

}  // namespace
}  // namespace host_channel_test
}  // namespace trestle
