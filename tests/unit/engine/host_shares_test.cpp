// HostShares against two simulated paths: what goes through host memory, and what that gains.
#include "engine/work/host_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace trestle {
namespace host_shares_test {
namespace {

constexpr uint64_t kMessage = uint64_t{4} << 20;
constexpr size_t kWindow = 4;  // messages under way, as of a step

// Carries one part after the other.
struct Wire {
  double rate = 1;  // bytes per nanosecond
  int64_t latency_ns = 0;
  int64_t free_ns = 0;

  int64_t arrival(int64_t now_ns, uint64_t bytes) {
    free_ns = std::max(free_ns, now_ns) + static_cast<int64_t>(static_cast<double>(bytes) / rate);
    return free_ns + latency_ns;
  }
};

// Sends messages to rank 1 over a path and through the host, as a step does: the copies to the host come ahead, a
// message goes when its copy is done, and messages end in their order.
class Sending {
 public:
  // to_host: PCIe from the sender's device, host: to the receiver's.
  Sending(Wire direct, Wire host, Wire to_host = {1e6, 0}, uint64_t bytes = kMessage)
      : direct_(direct), to_host_(to_host), host_(host), bytes_(bytes) {}

  // Bytes per nanosecond of so many messages.
  double send(size_t messages) {
    const int64_t begin_ns = now_ns_;
    for (size_t i = 0; i < messages; ++i) {
      if (under_way_.size() == kWindow) take_oldest();
      send_one();
    }
    while (!under_way_.empty()) take_oldest();
    return static_cast<double>(messages * bytes_) / static_cast<double>(now_ns_ - begin_ns);
  }
  void set_host(Wire host) { host_ = {host.rate, host.latency_ns, host_.free_ns}; }
  uint64_t through_host() const { return through_host_; }
  HostShares& shares() { return shares_; }

 private:
  struct Message {
    HostShares::Sent sent;
    ReadTimes read;
  };

  static PeerPaths divided() {
    PeerPaths paths({PeerPath::kSameDevice, PeerPath::kOtherDevice});
    paths.divide(1);
    return paths;
  }

  void send_one() {
    Message message;
    const uint64_t through_host = shares_.bytes_through_host(1, bytes_, now_ns_);
    EXPECT_LE(through_host, most_through_host(bytes_));
    EXPECT_EQ(through_host % kDividedUnitBytes, 0u);
    int64_t sent_ns = now_ns_;
    if (through_host > 0) {
      message.sent.host = shares_.send_through_host(1, through_host, now_ns_);
      sent_ns = to_host_.arrival(now_ns_, through_host);
      message.sent.waited_ns = sent_ns - now_ns_;
      message.read.host_ns = host_.arrival(sent_ns, through_host);
    }
    message.sent.direct = shares_.send_directly(1, bytes_ - through_host, sent_ns);
    message.read.device_ns = direct_.arrival(sent_ns, bytes_ - through_host);
    through_host_ += through_host;
    under_way_.push_back(message);
  }

  void take_oldest() {
    const Message message = under_way_.front();
    under_way_.pop_front();
    now_ns_ = std::max({now_ns_, message.read.device_ns, message.read.host_ns});
    shares_.read(1, message.sent, message.read, now_ns_);
  }

  Wire direct_;
  Wire to_host_;
  Wire host_;
  const uint64_t bytes_;
  int64_t now_ns_ = 1'000'000'000;
  HostShares shares_{divided(), 2, now_ns_};
  std::deque<Message> under_way_;
  uint64_t through_host_ = 0;
};

struct Machine {
  const char* name;
  Wire direct;
  Wire host;
  double least_gain;  // of goodput, of what the host could add at most
};
constexpr Machine kMachines[] = {
    {"NVLink 4 and PCIe 5", {450, 4'000}, {50, 12'000}, 0.9},
    {"NVLink 3 and PCIe 4", {280, 4'000}, {25, 12'000}, 0.9},
    {"NVLink of 200 GB/s and PCIe 5", {200, 4'000}, {50, 12'000}, 0.9},
    {"a path of which at most a quarter is taken", {25, 5'000}, {25, 15'000}, 0.33},
};

TEST(HostShares, BothPathsTogetherCarryMoreThanTheBetterOne) {
  for (const Machine& machine : kMachines) {
    SCOPED_TRACE(machine.name);
    Sending sending(machine.direct, machine.host);
    sending.send(500);
    const double both = sending.send(2000);
    EXPECT_GE(both, machine.direct.rate + machine.least_gain * machine.host.rate);
    EXPECT_LE(both, 1.001 * (machine.direct.rate + machine.host.rate));
  }
}

TEST(HostShares, APathThatDelaysMessagesGetsLittle) {
  for (const Wire slow : {Wire{0.5, 12'000}, Wire{50, 2'000'000}}) {
    Sending sending({450, 4'000}, slow);
    sending.send(20'000);
    const uint64_t before = sending.through_host();
    const double both = sending.send(20'000);
    EXPECT_GE(both, 0.95 * 450);
    EXPECT_LE(static_cast<double>(sending.through_host() - before), 0.002 * 20'000 * kMessage);
  }
}

// The copy to the host delays the whole message, which waits for it.
TEST(HostShares, ASlowCopyToTheHostGetsLittle) {
  struct Case {
    double direct;
    double to_host;
    double least;
  };
  for (const Case& one : {Case{200, 50, 240}, {200, 25, 215}, {200, 5, 196}, {450, 50, 485}, {450, 5, 440}}) {
    SCOPED_TRACE(testing::Message() << one.direct << " and " << one.to_host);
    Sending sending({one.direct, 4'000}, {50, 6'000}, {one.to_host, 6'000});
    sending.send(1000);
    EXPECT_GE(sending.send(4000), one.least);
  }
}

TEST(HostShares, DivideMessagesOfAllLengthsFromTheShortestOn) {
  for (const uint64_t bytes : {kLeastDividedBytes, 3 * kLeastDividedBytes / 2, 3 * kLeastDividedBytes, kMessage - 1}) {
    SCOPED_TRACE(bytes);
    Sending sending({200, 1'000}, {50, 2'000}, {50, 1'000}, bytes);
    sending.send(500);
    EXPECT_GE(sending.send(2000), 205);
  }
}

// The receiver may not be able to tell.
TEST(HostShares, StayWhereTimesAreUnknown) {
  Sending sending({450, 4'000}, {50, 12'000});
  sending.send(1000);
  HostShares& shares = sending.shares();
  const uint64_t before = shares.bytes_through_host(1, kMessage, INT64_MAX);
  ASSERT_GT(before, kDividedUnitBytes);
  for (int i = 0; i < 100; ++i) {
    HostShares::Sent sent;
    sent.host = shares.send_through_host(1, before, 2'000'000'000 + i);
    sent.direct = shares.send_directly(1, kMessage - before, 2'000'000'000 + i);
    shares.read(1, sent, {0, 2'000'000'000 + i}, 2'000'050'000 + i);
  }
  EXPECT_EQ(shares.bytes_through_host(1, kMessage, INT64_MAX), before);
}

TEST(HostShares, FollowWhatThePathsCarry) {
  Sending sending({450, 4'000}, {50, 12'000});
  sending.send(1000);
  sending.set_host({5, 12'000});  // another program uses PCIe
  sending.send(5000);
  EXPECT_GE(sending.send(5000), 0.95 * 450);
  sending.set_host({50, 12'000});
  sending.send(5000);
  EXPECT_GE(sending.send(1000), 450 + 0.9 * 50);
}

TEST(HostShares, LeaveShortMessagesWhole) {
  Sending sending({450, 4'000}, {50, 12'000});
  sending.send(1000);
  EXPECT_EQ(sending.shares().bytes_through_host(1, kLeastDividedBytes - 1, INT64_MAX), 0u);
}

TEST(HostShares, ReportBothPaths) {
  Sending sending({450, 4'000}, {50, 12'000});
  sending.send(1000);
  const std::vector<RailReport> reports = sending.shares().reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].name, "peer memory");
  EXPECT_EQ(reports[1].name, "host memory");
  EXPECT_EQ(reports[1].sent_bytes, sending.through_host());
  EXPECT_EQ(reports[0].sent_bytes + reports[1].sent_bytes, 1000 * kMessage);
  for (const RailReport& report : reports) {
    EXPECT_EQ(report.peer, 1);
    EXPECT_EQ(report.acknowledged_bytes, report.sent_bytes);
    EXPECT_EQ(report.queued_bytes, 0u);
    EXPECT_EQ(report.now().state, RailState::kUp);
  }
  sending.shares().close(3'000'000'000);
  for (const RailReport& report : sending.shares().reports()) EXPECT_EQ(report.now().state, RailState::kDown);
  EXPECT_NEAR(static_cast<double>(reports[0].goodput), 450e9, 50e9);
  EXPECT_NEAR(static_cast<double>(reports[1].goodput), 50e9, 12e9);
}

}  // namespace
}  // namespace host_shares_test
}  // namespace trestle
