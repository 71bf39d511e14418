// Messages that take turns (Step::after): two are under way, or those of two peers where two are too short for the
// link. They share one window of segments, which is always full.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "algorithms/catalog.h"
#include "engine/run/engine.h"
#include "engine/run/operation.h"
#include "engine/run/stream.h"
#include "sim/virtual_clock.h"

namespace trestle {
namespace turns_test {
namespace {

constexpr int32_t kRanks = 4;
constexpr uint64_t kSegmentBytes = 4096;
constexpr size_t kSegments = 12;  // of a block, which goes in two messages
constexpr size_t kElements = kSegments * kSegmentBytes / sizeof(float);
constexpr uint64_t kHalf = kSegments * kSegmentBytes / 2;  // bytes of a message
constexpr uint64_t kNumber = 1;

// The test decides when messages are done.
class PendingTransport : public Transport {
 public:
  std::string address() const override { return ""; }
  Status set_peers(const std::vector<std::string>&, const std::vector<std::string>&) override { return {}; }
  Result<bool> post_send(SendRequest& request) override {
    request.state = RequestState::kPending;
    sends.push_back(&request);
    return true;
  }
  Result<bool> post_recv(RecvRequest& request) override {
    request.state = RequestState::kPending;
    receives.push_back(&request);
    return true;
  }
  void release(RecvRequest& request) override { request.state = RequestState::kIdle; }
  Result<bool> progress() override { return false; }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  void close(int) override {
    sends.clear();
    receives.clear();
  }

  std::deque<SendRequest*> sends;
  std::deque<RecvRequest*> receives;
};

template <class Request>
size_t peers_of(const std::deque<Request*>& requests) {
  std::set<int32_t> peers;
  for (const Request* request : requests) peers.insert(request->peer);
  return peers.size();
}

template <class Request>
void end_oldest(std::deque<Request*>& requests) {
  requests.front()->state = RequestState::kDone;
  requests.pop_front();
}

// Rank 0 of an all-to-all.
class Turns : public testing::Test {
 protected:
  Turns() {
    auto transport = std::make_unique<PendingTransport>();
    transport_ = transport.get();
    EngineConfig config;
    config.ranks = kRanks;
    config.name = "rank 0";
    config.clock = &clock_;
    std::vector<Transport*> router(kRanks, transport.get());
    std::vector<std::unique_ptr<Transport>> transports;
    transports.push_back(std::move(transport));
    engine_ = std::make_shared<Engine>(std::move(config), std::move(transports), std::move(router), nullptr);
  }

  void begin(uint64_t segment_bytes = kSegmentBytes, uint64_t latency_ns = 0) {
    static uint64_t bytes = 0;
    bytes = segment_bytes;
    Dimension dimension;
    dimension.size = kRanks;
    dimension.bandwidth_mbps = 8000;  // a byte in a nanosecond
    dimension.latency_ns = latency_ns;
    topology_.dimensions = {dimension};
    PrepareRequest request;
    request.collective = Collective::kAllToAll;
    request.count = kElements;
    Schedule schedule;
    schedule.bytes = send_.size() * sizeof(float);
    const auto pairwise = static_cast<uint16_t>(find_algorithm("pairwise").value() - algorithms().data());
    schedule.chunks = {{schedule.bytes, {{kFlat, PhaseKind::kAllToAll, pairwise}}}};
    schedule.orders = {{kFlat, 1, {{0, 0}}}};
    PrepareContext context;
    context.topology = &topology_;
    context.segment_bytes = [](const void*, const std::vector<int32_t>&) { return bytes; };
    auto prepared = prepare(request, schedule, context);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    Operation* const operation = engine_->acquire(prepared.value());
    operation->bind(private_region(send_.data(), send_.size() * sizeof(float)),
                    private_region(recv_.data(), recv_.size() * sizeof(float)), kNumber, 0);
    engine_->count_pending(1);
    stream_->enqueue({operation});
    end_ = stream_->record();
    drive();
  }
  void drive() {
    while (engine_->try_progress()) {
    }
  }

  // Each half is one segment. at_even: messages under way while an even number is left, if there are so many.
  void expect_halves_under_way(uint64_t latency_ns, size_t at_even, size_t at_odd) {
    begin(kHalf, latency_ns);
    for (size_t left = 2 * (kRanks - 1); left > 0; --left) {
      ASSERT_EQ(transport_->sends.size(), std::min(left, left % 2 == 0 ? at_even : at_odd)) << left;
      EXPECT_LE(peers_of(transport_->sends), 2u) << left;
      EXPECT_EQ(transport_->receives.size(), transport_->sends.size()) << left;
      end_oldest(transport_->sends);
      end_oldest(transport_->receives);
      drive();
    }
    EXPECT_TRUE(end_->complete());
  }

  VirtualClock clock_;
  Topology topology_;
  PendingTransport* transport_ = nullptr;
  std::vector<float> send_ = std::vector<float>(kRanks * kElements, 3);
  std::vector<float> recv_ = std::vector<float>(kRanks * kElements);
  std::shared_ptr<Stream> stream_ = std::make_shared<Stream>();
  std::shared_ptr<Recording> end_;
  std::shared_ptr<Engine> engine_;  // declared last, because its operations point to the stream
};

TEST_F(Turns, ShareOneWindowThatIsAlwaysFull) {
  begin();
  for (size_t left = (kRanks - 1) * kSegments; left > 0; --left) {
    const size_t window = std::min<size_t>(kSegmentsInFlight, left);
    ASSERT_EQ(transport_->sends.size(), window) << left;
    ASSERT_EQ(transport_->receives.size(), window) << left;
    EXPECT_LE(peers_of(transport_->sends), 2u) << left;
    EXPECT_LE(peers_of(transport_->receives), 2u) << left;
    EXPECT_FALSE(end_->complete());
    end_oldest(transport_->sends);
    end_oldest(transport_->receives);
    drive();
  }
  EXPECT_TRUE(end_->complete());
}

TEST_F(Turns, AreUnderWayWithTwoPeersIfTheirMessagesAreShorterThanTheLatency) {
  expect_halves_under_way(2 * kHalf, 4, 3);
}

TEST_F(Turns, AreTwoMessagesIfTheseAreAsLongAsTheLatency) {
  expect_halves_under_way(kHalf, 2, 2);
}

// A peer that is late holds up what goes to the peer two turns after it, so that three never meet.
TEST_F(Turns, WaitForALatePeerTwoTurnsBefore) {
  begin();
  std::deque<SendRequest*>& sends = transport_->sends;
  for (size_t i = 0; i + 1 < kSegments; ++i) {
    end_oldest(sends);
    drive();
  }
  const SendRequest* const late = sends.front();  // the last segment to the first peer
  for (size_t i = 0; i < kSegments; ++i) {        // all segments of both messages to the second peer
    ASSERT_GE(sends.size(), 2u) << i;
    ASSERT_EQ(sends.front(), late);
    EXPECT_EQ(peers_of(sends), 2u) << i;
    sends[1]->state = RequestState::kDone;
    sends.erase(sends.begin() + 1);
    drive();
  }
  EXPECT_EQ(sends.size(), 1u) << "the third peer has no turn yet";
  end_oldest(sends);
  drive();
  EXPECT_EQ(sends.size(), kSegmentsInFlight);
  EXPECT_EQ(peers_of(sends), 1u);
  while (!end_->complete()) {
    ASSERT_FALSE(sends.empty() && transport_->receives.empty());
    if (!sends.empty()) end_oldest(sends);
    if (!transport_->receives.empty()) end_oldest(transport_->receives);
    drive();
  }
}

}  // namespace
}  // namespace turns_test
}  // namespace trestle
