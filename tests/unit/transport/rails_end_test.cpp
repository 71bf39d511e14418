// The end between two ranks with several rails: on rails whose frames the test writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "transport/message/rail_transport.h"

namespace trestle {
namespace {

constexpr int32_t kPeer = 1;
constexpr size_t kRails = 2;
constexpr int kLingerMs = 600'000;

class ScriptedRail final : public Rail {
 public:
  std::string address() const override { return "here"; }
  Status set_peers(const std::vector<std::string>&) override { return {}; }
  uint64_t memory_bytes() const override { return 0; }
  Status reach(int32_t) override { return {}; }
  void drop(int32_t) override { connected_ = false; }
  bool is_idle(int32_t) const override { return false; }
  Result<bool> write(int32_t) override { return false; }
  Result<bool> progress() override {
    ++rounds;
    if (script) script(*this);
    if (connected_) take_output();
    return true;
  }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  void close(int) override { connected_ = false; }

  void connect() {
    connected_ = true;
    events_->connected(kPeer);
  }
  void receive(FrameType type, uint64_t bytes = 0) {
    Frame frame;
    frame.type = type;
    frame.bytes = bytes;
    ASSERT_TRUE(events_->begin(kPeer, frame).ok());
    ASSERT_TRUE(events_->end(kPeer).ok());
  }
  void end() {
    connected_ = false;
    EXPECT_TRUE(events_->ended(kPeer).ok());
  }
  size_t sent(FrameType type) const { return static_cast<size_t>(std::ranges::count(sent_, type)); }
  size_t counted() const { return sent_.size() - sent(FrameType::kGoodbye); }

  std::function<void(ScriptedRail&)> script;
  int rounds = 0;

 private:
  void take_output() {
    for (Frame header; events_->next_control(kPeer, header);) sent_.push_back(header.type);
    for (Fragment fragment; events_->next_fragment(kPeer, fragment);) {
      sent_.push_back(fragment.header.type);
      events_->written(kPeer, fragment);
    }
  }

  std::vector<FrameType> sent_;
  bool connected_ = false;
};

// Over each rail rank 0 has sent something that is not acknowledged: a probe of the new connection, if not its message.
class RailsEnd : public testing::Test {
 protected:
  RailsEnd() {
    EndpointConfig config;
    config.ranks = 2;
    config.eager_bytes = 8192;
    RailSet set;
    for (ScriptedRail*& rail : rails_) {
      auto made = std::make_unique<ScriptedRail>();
      rail = made.get();
      set.rails.push_back(std::move(made));
      set.names.emplace_back("scripted");
    }
    set.paths = [](int32_t, const std::string&) -> Result<std::vector<RailPath>> {
      return std::vector<RailPath>{{0, "there", 1e9}, {1, "there", 1e9}};
    };
    transport_ = std::make_unique<RailTransport>(config, "sim", std::move(set));
    EXPECT_TRUE(transport_->set_peers({"here", "there"}, {}).ok());
    send_.peer = kPeer;
    send_.pieces = pieces_;
    send_.bytes = data_.size();
    EXPECT_TRUE(transport_->post_send(send_).value());
    for (ScriptedRail* rail : rails_) rail->connect();
    EXPECT_TRUE(transport_->progress().ok());
    for (ScriptedRail* rail : rails_) {
      EXPECT_GE(rail->counted(), 1u);
      rail->rounds = 0;
    }
  }

  void expect_no_loss() {
    for (const RailReport& report : transport_->rail_reports()) EXPECT_EQ(report.losses, 0u);
  }

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

}  // namespace
}  // namespace trestle
