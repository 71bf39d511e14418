// A copy of many segments lets messages move before it is done.
#include <gtest/gtest.h>

#include <vector>

#include "algorithms/catalog.h"
#include "unit/engine/streams.h"

namespace trestle {
namespace long_copy_test {
namespace {

constexpr uint64_t kSegmentBytes = 4096;
constexpr size_t kSegments = 8;
constexpr size_t kElements = kSegments * kSegmentBytes / sizeof(float);  // of a block
constexpr uint64_t kNumber = 1;

// Rank 0 gathers: it copies its own block, then receives that of rank 1.
class LongCopy : public Streams {
 protected:
  void begin(uint64_t copy_bytes) {
    auto transport = std::make_unique<GatedTransport>();
    gate_ = transport.get();
    EngineConfig config = config_of_two(clock_);
    config.copy_bytes = copy_bytes;
    engine_ = engine_of_two(std::move(config), std::move(transport));
    const auto direct = static_cast<uint16_t>(find_algorithm("direct").value() - algorithms().data());
    PrepareRequest request;
    request.collective = Collective::kGather;
    request.count = kElements;
    Schedule schedule;
    schedule.bytes = recv_.size() * sizeof(float);
    schedule.chunks = {{schedule.bytes, {{kFlat, PhaseKind::kGather, direct}}}};
    schedule.orders = {{kFlat, 1, {{0, 0}}}};
    PrepareContext context;
    context.topology = &topology_;
    context.segment_bytes = [](const void*, const std::vector<int32_t>&) { return kSegmentBytes; };
    auto prepared = prepare(request, schedule, context);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    Operation* const operation = engine_->acquire(prepared.value());
    operation->bind(private_region(send_.data(), send_.size() * sizeof(float)),
                    private_region(recv_.data(), recv_.size() * sizeof(float)), kNumber, 0);
    engine_->count_pending(1);
    a_->enqueue({operation});
    end_ = a_->record();
  }
  float last_copied() const { return recv_[kElements - 1]; }

  std::vector<float> send_ = std::vector<float>(kElements, 3);
  std::vector<float> recv_ = std::vector<float>(2 * kElements, -7);
  std::shared_ptr<Recording> end_;
};

TEST_F(LongCopy, LetsReceivesBePostedBeforeItIsDone) {
  begin(kSegmentBytes);
  while (gate_->posted().empty()) ASSERT_TRUE(engine_->try_progress()) << "the receive is never posted";
  EXPECT_EQ(recv_[0], 3);
  EXPECT_EQ(last_copied(), -7);
  drive();
  EXPECT_EQ(last_copied(), 3);
  EXPECT_FALSE(end_->complete());
  for (size_t i = 0; i < kSegments; ++i) arrive(kNumber);
  EXPECT_TRUE(end_->complete());
}

// Nothing rings for the rest of a copy, so a thread that leaves it to another one must not find that one asleep.
TEST_F(LongCopy, KeepsThreadsAwakeUntilItIsDone) {
  begin(kSegmentBytes);
  size_t rounds = 0;
  for (; last_copied() != 3; ++rounds) {
    ASSERT_TRUE(engine_->try_progress());
    EXPECT_EQ(engine_->begin_sleep().state, Engine::Sleep::State::kBusy);
  }
  EXPECT_GE(rounds, kSegments) << "a round copies a segment";
  drive();
  const Engine::Sleep sleep = engine_->begin_sleep();
  EXPECT_EQ(sleep.state, Engine::Sleep::State::kBegun);
  engine_->end_sleep(sleep);
  for (size_t i = 0; i < kSegments; ++i) arrive(kNumber);
  EXPECT_TRUE(end_->complete());
}

TEST_F(LongCopy, IsDoneAtOnceWithoutALimit) {
  begin(UINT64_MAX);
  while (gate_->posted().empty()) ASSERT_TRUE(engine_->try_progress()) << "the receive is never posted";
  EXPECT_EQ(last_copied(), 3);
  for (size_t i = 0; i < kSegments; ++i) arrive(kNumber);
  EXPECT_TRUE(end_->complete());
}

}  // namespace
}  // namespace long_copy_test
}  // namespace trestle
