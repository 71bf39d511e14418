// Streams and events: the order of work. The operations are receives over a transport, and the test decides when their
// messages arrive.
#include <gtest/gtest.h>

#include <utility>

#include "base/clock.h"
#include "sched/select/select.h"
#include "unit/engine/streams.h"

namespace trestle {
namespace stream_test {
namespace {

TEST_F(Streams, RunOneItemAfterTheOther) {
  a_->enqueue({operation(1)});
  a_->enqueue({operation(2)});
  EXPECT_EQ(posted(), Numbers{1});
  EXPECT_FALSE(a_->idle());
  EXPECT_EQ(a_->head_engine(), engine_);
  arrive(1);
  EXPECT_EQ(posted(), Numbers{2});
  arrive(2);
  EXPECT_TRUE(a_->idle());
  EXPECT_EQ(a_->head_engine(), nullptr);
  EXPECT_EQ(engine_->pending(), 0u);
}

TEST_F(Streams, DoNotWaitForEachOther) {
  a_->enqueue({operation(1)});
  b_->enqueue({operation(2)});
  EXPECT_EQ(posted(), (Numbers{1, 2}));
  arrive(2);
  EXPECT_TRUE(b_->idle());
  EXPECT_FALSE(a_->idle());
  arrive(1);
  EXPECT_TRUE(a_->idle());
}

TEST_F(Streams, AGroupProgressesTogetherAndEndsTogether) {
  a_->enqueue({operation(1), operation(2), operation(3)});
  a_->enqueue({operation(4)});
  EXPECT_EQ(posted(), (Numbers{1, 2, 3}));
  arrive(3);
  arrive(1);
  EXPECT_EQ(posted(), Numbers{2});
  arrive(2);
  EXPECT_EQ(posted(), Numbers{4});
  arrive(4);
  EXPECT_TRUE(a_->idle());
}

TEST_F(Streams, AnEventIsCompleteWhenWhatWasBeforeItIsDone) {
  EXPECT_EQ(event_->last(), nullptr) << "before it is recorded";
  a_->enqueue({operation(1)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  a_->enqueue({operation(2)});
  EXPECT_FALSE(event_->last()->complete());
  drive();
  arrive(1);
  EXPECT_TRUE(event_->last()->complete());
  EXPECT_FALSE(a_->idle());
  arrive(2);
}

TEST_F(Streams, AWaitHoldsWhatComesAfterIt) {
  a_->enqueue({operation(1)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  b_->enqueue({operation(2)});
  b_->wait_for(event_->last());
  b_->enqueue({operation(3)});
  c_->wait_for(event_->last());
  c_->enqueue({operation(4)});
  EXPECT_EQ(posted(), (Numbers{1, 2}));
  arrive(2);
  EXPECT_EQ(posted(), Numbers{1});
  arrive(1);
  EXPECT_EQ(posted(), (Numbers{3, 4}));
  arrive(3);
  arrive(4);
  EXPECT_TRUE(b_->idle());
  EXPECT_TRUE(c_->idle());
}

TEST_F(Streams, AnEventThatWasNeverRecordedHoldsNobody) {
  b_->wait_for(event_->last());
  EXPECT_TRUE(b_->idle());
}

// A wait refers to the record before it, whatever happens to the event afterwards.
TEST_F(Streams, ALaterRecordDoesNotFreeWhoWaitsForAnEarlierOne) {
  a_->enqueue({operation(1)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  b_->wait_for(event_->last());
  a_->enqueue({operation(2)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  b_->enqueue({operation(3)});
  EXPECT_EQ(posted(), Numbers{1});
  arrive(1);
  EXPECT_EQ(posted(), (Numbers{2, 3})) << "nor does it hold who waits for the earlier one";
  EXPECT_FALSE(event_->last()->complete()) << "the last record counts";
  arrive(2);
  EXPECT_TRUE(event_->last()->complete());
  arrive(3);
}

TEST_F(Streams, RecordsOnTwoStreamsAreToldApart) {
  a_->enqueue({operation(1)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  c_->wait_for(event_->last());  // waits for the one on a
  b_->enqueue({operation(2)});
  ASSERT_TRUE(event_->record_outer(*b_).ok());
  c_->enqueue({operation(3)});
  EXPECT_EQ(posted(), (Numbers{1, 2}));
  arrive(2);
  EXPECT_TRUE(event_->last()->complete());
  EXPECT_EQ(posted(), Numbers{1});
  arrive(1);
  EXPECT_EQ(posted(), Numbers{3});
  EXPECT_TRUE(event_->last()->complete());
  arrive(3);
}

TEST_F(Streams, ThatAreGoneAreNotWoken) {
  a_->enqueue({operation(1)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  b_->wait_for(event_->last());
  b_.reset();
  drive();
  arrive(1);
  EXPECT_TRUE(event_->last()->complete());
}

TEST_F(Streams, AFailureEndsAllAndIsToldOncePerStream) {
  a_->enqueue({operation(1)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  a_->enqueue({operation(2)});
  b_->wait_for(event_->last());
  b_->enqueue({operation(3)});
  drive();
  engine_->fail({Code::kRemoteError, "rank 1 went away"});
  engine_->try_progress();
  EXPECT_TRUE(a_->idle());
  EXPECT_TRUE(b_->idle());
  EXPECT_TRUE(event_->last()->complete());
  EXPECT_EQ(engine_->pending(), 0u);
  for (const auto& stream : {a_, b_}) {
    const auto error = stream->tell_failure();
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->message, "rank 1 went away");
    EXPECT_FALSE(stream->tell_failure().has_value());
  }
}

// Two operations that run at once need two blocks of staging, but only one was reserved. Waiting for the first
// operation could be a deadlock, and the block is not allocated under the progress lock.
TEST_F(Streams, AnOperationWithoutStagingBeginsARoundLater) {
  constexpr uint64_t kStaging = 1 << 20;
  auto staged = std::make_shared<Prepared>(*prepared_);
  staged->staging_bytes = kStaging;
  prepared_ = staged;
  engine_->staging().reserve(kStaging);
  const ByteMeter& meter = engine_->statistics().staging();
  a_->enqueue({operation(1)});
  b_->enqueue({operation(2)});
  EXPECT_TRUE(engine_->try_progress());
  EXPECT_EQ(gate_->posted(), Numbers{1});
  EXPECT_EQ(meter.now(), 2 * kStaging) << "allocated after the round";
  EXPECT_EQ(engine_->begin_sleep().state, Engine::Sleep::State::kBusy) << "no bell tells of new staging";
  EXPECT_EQ(posted(), (Numbers{1, 2}));
  arrive(2);
  arrive(1);
  EXPECT_TRUE(a_->idle() && b_->idle());
  EXPECT_EQ(meter.now(), 2 * kStaging) << "two have run at once, and may again";
  a_->enqueue({operation(3)});
  b_->enqueue({operation(4)});
  EXPECT_TRUE(engine_->try_progress());
  EXPECT_EQ(gate_->posted(), (Numbers{3, 4}));
  engine_->fail({Code::kRemoteError, "rank 1 went away"});
  drive();
  EXPECT_EQ(engine_->pending(), 0u);
}

// It has not begun when the communicator fails.
TEST_F(Streams, AnOperationWithoutStagingEndsWithItsCommunicator) {
  auto staged = std::make_shared<Prepared>(*prepared_);
  staged->staging_bytes = 1 << 20;
  prepared_ = staged;
  a_->enqueue({operation(1)});
  EXPECT_TRUE(engine_->try_progress());
  EXPECT_EQ(gate_->posted(), Numbers{});
  engine_->fail({Code::kRemoteError, "rank 1 went away"});
  drive();
  EXPECT_TRUE(a_->idle());
  EXPECT_EQ(engine_->pending(), 0u);
}

// One chunk completes and the next one fails in the same round. The sentence must be about the failed one.
TEST_F(Streams, AFailureNamesThePhaseThatIsNotDone) {
  PrepareRequest request;
  request.collective = Collective::kBroadcast;
  request.count = 256;
  request.root = 1;
  SelectionConfig selection;
  selection.chunks = selection.in_flight = 2;
  selection.algo = "direct";
  PrepareContext context;
  context.topology = &topology_;
  context.segment_bytes = [](const void*, const std::vector<int32_t>&) { return uint64_t{64}; };
  auto schedule = select_schedule({request.collective, 1024, 4, 1}, topology_, selection);
  ASSERT_TRUE(schedule.ok()) << schedule.error().message;
  ASSERT_EQ(schedule.value().chunks.size(), 2u);
  auto prepared = prepare(request, schedule.value(), context);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  std::vector<float> data(request.count);
  Operation* both = engine_->acquire(prepared.value());
  both->bind({}, private_region(data.data(), data.size() * sizeof(float)), 1, 0);
  engine_->count_pending(1);
  a_->enqueue({both});
  ASSERT_EQ(posted().size(), 2u * kSegmentsInFlight);
  gate_->arrive_some(0, kSegmentsInFlight);
  ASSERT_EQ(posted().size(), 2u * kSegmentsInFlight);
  gate_->arrive_some(0, kSegmentsInFlight);
  gate_->arrive_some(1, 1);
  gate_->closed_to_posts = true;
  drive();
  ASSERT_TRUE(engine_->failed());
  EXPECT_NE(engine_->failure()->message.find("chunk 1"), std::string::npos) << engine_->failure()->message;
}

// A group prepares all its calls before it starts the first one. The cache may have dropped some by then.
TEST_F(Streams, WhatTheCacheDropsIsNotKept) {
  for (const bool started : {false, true}) {
    SCOPED_TRACE(started);
    SetUp();
    Operation* early = started ? operation(1) : nullptr;
    engine_->forget(prepared_.get());
    a_->enqueue({early != nullptr ? early : operation(1)});
    a_->enqueue({operation(2)});
    const std::weak_ptr<const Prepared> watched = std::exchange(prepared_, nullptr);
    EXPECT_EQ(posted(), Numbers{1});
    arrive(1);
    arrive(2);
    EXPECT_TRUE(watched.expired());
  }
}

TEST_F(Streams, ADeadlineStartsWhenTheOperationReachesTheHead) {
  const auto look_at_clock = [&] {
    for (int i = 0; i < 1000; ++i) engine_->try_progress();
  };
  a_->enqueue({operation(1)});
  a_->enqueue({operation(2, 10 * kSecond)});
  drive();
  clock_.advance_to(60 * kSecond);
  look_at_clock();
  EXPECT_FALSE(engine_->failed());
  arrive(1);
  clock_.advance_to(69 * kSecond);
  look_at_clock();
  EXPECT_FALSE(engine_->failed());
  clock_.advance_to(71 * kSecond);
  look_at_clock();
  ASSERT_TRUE(engine_->failed());
  EXPECT_EQ(engine_->failure()->code, Code::kTimeout);
  EXPECT_NE(engine_->failure()->message.find("after 10s"), std::string::npos) << engine_->failure()->message;
  EXPECT_TRUE(a_->idle());
}

}  // namespace
}  // namespace stream_test
}  // namespace trestle
