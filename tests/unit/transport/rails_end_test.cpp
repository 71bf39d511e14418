// The end between two ranks with several rails: on rails whose frames the test writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/virtual_clock.h"
#include "transport/message/rail_transport.h"

namespace trestle {
namespace {

constexpr int32_t kPeer = 1;
constexpr int32_t kOther = 2;
constexpr int32_t kRanks = 3;
constexpr size_t kRails = 2;
constexpr int kLingerMs = 1000;
constexpr int64_t kRoundNs = 1'000'000;  // that a round of a rail takes

class ScriptedRail final : public Rail {
 public:
  explicit ScriptedRail(VirtualClock& clock) : clock_(clock) {}
  std::string address() const override { return "here"; }
  Status set_peers(const std::vector<std::string>&) override { return {}; }
  uint64_t memory_bytes() const override { return 0; }
  Status reach(int32_t rank) override {
    reached.push_back(rank);
    return {};
  }
  void drop(int32_t rank) override { sent_[rank].connected = false; }
  bool is_idle(int32_t) const override { return false; }
  Result<bool> write(int32_t) override { return false; }
  Result<bool> progress() override {
    ++rounds;
    clock_.advance_to(clock_.now_ns() + kRoundNs);
    if (script) script(*this);
    if (failure_.has_value()) return *failure_;
    for (auto& [rank, peer] : sent_) {
      if (peer.connected) take_output(rank, peer);
    }
    return true;
  }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  void close(int) override { sent_.clear_connections(); }

  void connect(int32_t rank) {
    sent_[rank].connected = true;
    events_->connected(rank);
  }
  void receive(FrameType type, uint64_t bytes = 0, int32_t rank = kPeer) {
    Frame frame;
    frame.type = type;
    frame.bytes = bytes;
    receive(frame, rank);
  }
  void receive(const Frame& frame, int32_t rank) {
    ASSERT_TRUE(events_->begin(rank, frame).ok());
    ASSERT_TRUE(events_->end(rank).ok());
  }
  // The connection is at its end. An error is the rail's, as tcp's.
  void end(int32_t rank = kPeer) {
    sent_[rank].connected = false;
    if (const Status ended = events_->ended(rank); !ended.ok()) failure_ = ended.error();
  }
  // The connection broke.
  void lose(int32_t rank = kPeer) {
    sent_[rank].connected = false;
    if (const Status lost = events_->lost(rank, {Code::kRemoteError, "cut"}); !lost.ok()) failure_ = lost.error();
  }
  size_t sent(FrameType type, int32_t rank = kPeer) const {
    const auto peer = sent_.find(rank);
    return peer == sent_.end() ? 0 : static_cast<size_t>(std::ranges::count(peer->second.frames, type, &Frame::type));
  }
  const Frame& last(int32_t rank = kPeer) const { return sent_.at(rank).frames.back(); }
  // Frames that a rank acknowledges.
  size_t counted(int32_t rank = kPeer) const {
    const auto peer = sent_.find(rank);
    return peer == sent_.end() ? 0 : peer->second.frames.size() - sent(FrameType::kGoodbye, rank);
  }

  std::function<void(ScriptedRail&)> script;
  int rounds = 0;
  std::vector<int32_t> reached;

 private:
  struct Output {
    bool connected = false;
    std::vector<Frame> frames;
  };
  struct Outputs : std::map<int32_t, Output> {
    void clear_connections() {
      for (auto& [rank, output] : *this) output.connected = false;
    }
  };

  void take_output(int32_t rank, Output& output) {
    for (Frame header; events_->next_control(rank, header);) output.frames.push_back(header);
    for (Fragment fragment; events_->next_fragment(rank, fragment);) {
      output.frames.push_back(fragment.header);
      events_->written(rank, fragment);
    }
  }

  VirtualClock& clock_;
  Outputs sent_;
  std::optional<Error> failure_;
};

// Rank 0 has connections to two ranks. Over each rail it has sent something to its peer that is not acknowledged: a
// probe of the new connection, if not its message.
class RailsEnd : public testing::Test {
 protected:
  RailsEnd() {
    EndpointConfig config;
    config.ranks = kRanks;
    config.eager_bytes = 8192;
    RailSet set;
    set.clock = &clock_;
    for (ScriptedRail*& rail : rails_) {
      auto made = std::make_unique<ScriptedRail>(clock_);
      rail = made.get();
      set.rails.push_back(std::move(made));
      set.names.emplace_back("scripted");
    }
    set.paths = [](int32_t, const std::string&) -> Result<std::vector<RailPath>> {
      return std::vector<RailPath>{{0, "there", 1e9}, {1, "there", 1e9}};
    };
    transport_ = std::make_unique<RailTransport>(config, "sim", std::move(set));
    EXPECT_TRUE(transport_->set_peers({"here", "there", "elsewhere"}, {}).ok());
    send_.peer = kPeer;
    send_.pieces = pieces_;
    send_.bytes = data_.size();
    EXPECT_TRUE(transport_->post_send(send_).value());
    for (ScriptedRail* rail : rails_) rail->connect(kPeer);
    EXPECT_TRUE(transport_->progress().ok());
    for (ScriptedRail* rail : rails_) {
      EXPECT_GE(rail->counted(), 1u);
      rail->rounds = 0;
      rail->reached.clear();
    }
  }

  void expect_no_loss() {
    for (const RailReport& report : transport_->rail_reports()) EXPECT_EQ(report.losses, 0u);
  }

  VirtualClock clock_;
  std::array<ScriptedRail*, kRails> rails_{};
  std::array<std::byte, 64> data_{};
  std::array<ConstPiece, 1> pieces_{ConstPiece{data_.data(), data_.size()}};
  SendRequest send_;
  std::unique_ptr<RailTransport> transport_;
};

TEST_F(RailsEnd, OwnGoodbyeGoesAlthoughThePeersComesBeforeTheAcknowledgement) {
  for (ScriptedRail* rail : rails_) {
    rail->script = [](ScriptedRail& self) {
      if (self.rounds == 1) self.receive(FrameType::kGoodbye);
      if (self.rounds == 3) self.receive(FrameType::kAck, self.counted());
    };
  }
  transport_->close(kLingerMs);
  for (const ScriptedRail* rail : rails_) {
    EXPECT_EQ(rail->sent(FrameType::kGoodbye), 1u);
    EXPECT_GE(rail->rounds, 3);
  }
  expect_no_loss();
}

TEST_F(RailsEnd, APeerThatLeavesWithoutAnAcknowledgementIsNotWaitedFor) {
  for (ScriptedRail* rail : rails_) {
    rail->script = [](ScriptedRail& self) {
      if (self.rounds == 1) self.receive(FrameType::kGoodbye);
      if (self.rounds == 3) self.end();
    };
  }
  transport_->close(kLingerMs);
  for (const ScriptedRail* rail : rails_) EXPECT_EQ(rail->rounds, 3);
  expect_no_loss();
}

// A peer that has said goodbye and then freezes: this rank's goodbye goes when three quarters of the time are over.
TEST_F(RailsEnd, APeerThatFreezesAfterItsGoodbyeCostsNoMoreThanTheLinger) {
  for (ScriptedRail* rail : rails_) {
    rail->script = [](ScriptedRail& self) {
      if (self.rounds == 1) self.receive(FrameType::kGoodbye);
    };
  }
  const int64_t begin = clock_.now_ns();
  transport_->close(kLingerMs);
  const int64_t virtual_ms = (clock_.now_ns() - begin) / 1'000'000;
  EXPECT_GE(virtual_ms, kLingerMs / 4 * 3);
  EXPECT_LE(virtual_ms, kLingerMs + 2);
  for (const ScriptedRail* rail : rails_) EXPECT_EQ(rail->sent(FrameType::kGoodbye), 1u);
  expect_no_loss();
}

TEST_F(RailsEnd, OneRailThatEndsBeforeTheOtherIsAcknowledgedCostsNoGoodbyeThere) {
  rails_[0]->script = [](ScriptedRail& self) {
    if (self.rounds == 1) self.receive(FrameType::kAck, self.counted());
    if (self.rounds == 2) self.receive(FrameType::kGoodbye);
    if (self.rounds == 3) self.end();
  };
  rails_[1]->script = [](ScriptedRail& self) {
    if (self.rounds == 1) self.receive(FrameType::kGoodbye);
    if (self.rounds == 6) self.receive(FrameType::kAck, self.counted());
  };
  transport_->close(kLingerMs);
  EXPECT_EQ(rails_[1]->sent(FrameType::kGoodbye), 1u);
  EXPECT_GE(rails_[1]->rounds, 6);
  expect_no_loss();
}

// The goodbye was on the rail, and another one would not follow.
TEST_F(RailsEnd, ARailThatIsLostWithTheGoodbyeIsNotMadeAgain) {
  bool settled = false;
  rails_[0]->script = [&](ScriptedRail& self) {
    if (self.rounds < 3) self.receive(FrameType::kAck, self.counted());
    if (settled || self.last().type != FrameType::kRailEnd) return;
    Frame answer = self.last();
    answer.bytes = rails_[1]->counted();
    self.receive(answer, kPeer);
    settled = true;
  };
  bool lost = false;
  rails_[1]->script = [&](ScriptedRail& self) {
    if (self.rounds < 3) self.receive(FrameType::kAck, self.counted());
    if (self.sent(FrameType::kGoodbye) == 1 && !std::exchange(lost, true)) self.lose();
  };
  transport_->close(kLingerMs);
  EXPECT_TRUE(settled);
  EXPECT_EQ(rails_[0]->sent(FrameType::kGoodbye), 1u);
  EXPECT_EQ(rails_[1]->sent(FrameType::kGoodbye), 1u);
  EXPECT_TRUE(rails_[1]->reached.empty());
}

TEST_F(RailsEnd, ARankThatDiesMeanwhileKeepsNobodyFromItsGoodbye) {
  for (ScriptedRail* rail : rails_) {
    rail->connect(kOther);
    rail->script = [](ScriptedRail& self) {
      if (self.rounds == 2) self.end(kPeer);  // without a goodbye
      if (self.rounds != 4) return;
      self.receive(FrameType::kAck, self.counted(kOther), kOther);
      self.receive(FrameType::kGoodbye, 0, kOther);
    };
  }
  transport_->close(kLingerMs);
  for (const ScriptedRail* rail : rails_) EXPECT_EQ(rail->sent(FrameType::kGoodbye, kOther), 1u);
}

}  // namespace
}  // namespace trestle
