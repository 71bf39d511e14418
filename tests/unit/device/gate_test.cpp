// Gates and marks over the fake driver: by words, and by host functions and events.
#include "device/gate.h"

#include <cuda.h>

#include <atomic>
#include <thread>

#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace {

class Gates : public WithFakeDriver, public testing::WithParamInterface<GateWay> {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    stream_ = device_->make_stream(false).value();
  }
  void TearDown() override {
    ASSERT_TRUE(device_->destroy_stream(stream_).ok());
    WithFakeDriver::TearDown();
  }
  // A host function ends on a thread of its own, so the stream is asked until then.
  void wait_until_idle(StreamHandle* stream) {
    while (!device_->is_idle(stream).value()) {
    }
  }
  StreamHandle* stream_ = nullptr;
};

TEST_P(Gates, HoldAStreamUntilTheyAreOpened) {
  const auto gate = Gate::create(*device_, GetParam()).value();
  const uint32_t first = gate->hold(stream_).value();
  const uint32_t second = gate->hold(stream_).value();
  EXPECT_NE(first, second);
  EXPECT_FALSE(device_->is_idle(stream_).value());
  gate->open(first);
  EXPECT_FALSE(device_->is_idle(stream_).value());
  gate->open(second);
  wait_until_idle(stream_);
}

TEST_P(Gates, OpenedBeforehandHoldNothing) {
  const auto gate = Gate::create(*device_, GetParam()).value();
  const uint32_t ticket = gate->hold(stream_).value();
  gate->open(ticket);
  wait_until_idle(stream_);
}

TEST_P(Gates, OpenAllAtOnce) {
  const auto gate = Gate::create(*device_, GetParam()).value();
  StreamHandle* const other = device_->make_stream(false).value();
  for (StreamHandle* const stream : {stream_, other, stream_}) ASSERT_TRUE(gate->hold(stream).ok());
  EXPECT_FALSE(device_->is_idle(other).value());
  gate->open_all();
  wait_until_idle(stream_);
  wait_until_idle(other);
  ASSERT_TRUE(device_->destroy_stream(other).ok());
}

TEST_P(Gates, OpenAllBesideTheThreadThatHolds) {
  const auto gate = Gate::create(*device_, GetParam()).value();
  std::atomic<bool> held = false;
  std::thread holds([&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(gate->hold(stream_).ok());
    held = true;
  });
  while (!held) gate->open_all();
  holds.join();
  gate->open_all();
  wait_until_idle(stream_);
}

TEST_P(Gates, ThatCannotHoldTellTheError) {
  const auto gate = Gate::create(*device_, GetParam()).value();
  fake().fail(1, CUDA_ERROR_OUT_OF_MEMORY);  // after the context
  const auto refused = gate->hold(stream_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kSystemError);
  EXPECT_TRUE(device_->is_idle(stream_).value());
  EXPECT_EQ(gate->hold(stream_).value(), 1U) << "the ticket was not given out";
  gate->open(1);
  wait_until_idle(stream_);
}

TEST_P(Gates, MarksTellHowFarAStreamIs) {
  const auto gate = Gate::create(*device_, GetParam()).value();
  const auto mark = Mark::create(*device_, GetParam(), 3).value();
  const uint32_t free = mark->put(stream_).value();
  const uint32_t ticket = gate->hold(stream_).value();
  const uint32_t held = mark->put(stream_).value();
  EXPECT_FALSE(device_->is_idle(stream_).value());
  EXPECT_EQ(mark->reached().value(), free);
  EXPECT_FALSE(Mark::is_past(mark->reached().value(), held));
  gate->open(ticket);
  wait_until_idle(stream_);
  EXPECT_EQ(mark->reached().value(), held);
}

TEST_P(Gates, MarksHaveRoomAgainWhenTheStreamGoesOn) {
  const auto mark = Mark::create(*device_, GetParam(), 3).value();
  fake().hold_streams(true);
  uint32_t last = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(mark->has_room());
    last = mark->put(stream_).value();
  }
  while (mark->has_room()) last = mark->put(stream_).value();
  EXPECT_EQ(mark->reached().value(), 0U);
  fake().hold_streams(false);
  EXPECT_TRUE(device_->is_idle(stream_).value());
  EXPECT_EQ(mark->reached().value(), last);
  EXPECT_TRUE(mark->has_room());
}

TEST_P(Gates, MarksFindThatTheDeviceFailed) {
  const auto mark = Mark::create(*device_, GetParam(), 1).value();
  fake().hold_streams(true);
  ASSERT_TRUE(mark->put(stream_).ok());
  ASSERT_TRUE(mark->reached().ok());
  fake().break_device(CUDA_ERROR_ILLEGAL_ADDRESS);
  int polls = 0;
  while (mark->reached().ok()) ASSERT_LT(++polls, 2000);
}

TEST_P(Gates, UseWordsThatAreThereAlready) {
  auto* const words = reinterpret_cast<uint32_t*>(device_->allocate_pinned(128).value());
  words[0] = words[16] = 0;
  const int pinned = fake().objects().pinned;
  {
    const auto gate = Gate::create(*device_, GetParam(), words).value();
    const auto mark = Mark::create(*device_, GetParam(), 2, words + 16).value();
    EXPECT_EQ(fake().objects().pinned, pinned);
    const uint32_t reached = mark->put(stream_).value();
    const uint32_t held = gate->hold(stream_).value();
    EXPECT_FALSE(device_->is_idle(stream_).value());
    EXPECT_EQ(mark->reached_by_word().value(), reached);
    EXPECT_TRUE(mark->is_clear().value());
    gate->open(held);
    wait_until_idle(stream_);
  }
  EXPECT_EQ(fake().objects().pinned, pinned);
  ASSERT_TRUE(device_->free_pinned(reinterpret_cast<std::byte*>(words)).ok());
}

TEST_P(Gates, WithWordsTheDriverIsNotAsked) {
  if (GetParam() != GateWay::kWord) GTEST_SKIP() << "events are asked for";
  const auto mark = Mark::create(*device_, GetParam(), 1).value();
  fake().hold_streams(true);
  ASSERT_TRUE(mark->put(stream_).ok());
  const int calls = fake().calls();
  for (int polls = 0; polls < 3000; ++polls) ASSERT_EQ(mark->reached_by_word().value(), 0U);
  EXPECT_FALSE(mark->is_clear().value());
  EXPECT_EQ(fake().calls(), calls);
  fake().hold_streams(false);
  EXPECT_TRUE(device_->is_idle(stream_).value());
}

TEST_P(Gates, ThatAreNotMadeLeaveNothing) {
  const FakeObjects before = fake().objects();
  for (int nth = 0; nth < 4; ++nth) {
    fake().fail(nth, CUDA_ERROR_OUT_OF_MEMORY);
    const bool made = Gate::create(*device_, GetParam()).ok() && Mark::create(*device_, GetParam(), 2).ok();
    EXPECT_FALSE(made) << nth;
    EXPECT_EQ(fake().objects(), before) << nth;
  }
}

TEST(GateTickets, WrapAround) {
  EXPECT_TRUE(Mark::is_past(3, 0xfffffff0U));
  EXPECT_FALSE(Mark::is_past(0xfffffff0U, 3));
  EXPECT_TRUE(Mark::is_past(5, 5));
}

// Each launch closes the gate again, which the one before has left open.
TEST_F(WithFakeDriver, AGateInAGraphHoldsEveryLaunch) {
  open_devices_of_fake();
  StreamHandle* const stream = device_->make_stream(false).value();
  auto* const word = reinterpret_cast<uint32_t*>(device_->allocate_pinned(sizeof(uint32_t)).value());
  GraphGate gate(*device_, word);
  struct Arrivals {
    GraphGate& gate;
    std::atomic<int> count{0};
  } arrivals{gate};
  const auto arrived = [](void* argument) {
    auto* const all = static_cast<Arrivals*>(argument);
    EXPECT_TRUE(all->gate.close());
    ++all->count;
  };
  ASSERT_TRUE(device_->begin_capture(stream).ok());
  ASSERT_TRUE(gate.capture(stream, arrived, &arrivals).ok());
  GraphHandle* const graph = device_->end_capture(stream).value();
  for (int launch = 1; launch < 4; ++launch) {
    ASSERT_TRUE(device_->launch(graph, stream).ok());
    while (arrivals.count != launch) ASSERT_FALSE(device_->is_idle(stream).value());
    EXPECT_FALSE(gate.close()) << "it is closed";
    for (int look = 0; look < 100; ++look) EXPECT_FALSE(device_->is_idle(stream).value());
    gate.open();
    while (!device_->is_idle(stream).value()) {
    }
  }
  ASSERT_TRUE(device_->destroy_graph(graph).ok());
  ASSERT_TRUE(device_->destroy_stream(stream).ok());
  ASSERT_TRUE(device_->free_pinned(reinterpret_cast<std::byte*>(word)).ok());
}

INSTANTIATE_TEST_SUITE_P(Ways, Gates, testing::Values(GateWay::kWord, GateWay::kHost), [](const auto& info) {
  return std::string(info.param == GateWay::kWord ? "ByWord" : "ByHost");
});

TEST_F(WithFakeDriver, TheBestWayIsAskedOfTheDevice) {
  open_devices_of_fake();
  EXPECT_EQ(best_way(*device_), GateWay::kWord);
  fake().set_word_waits(false);
  device_ = devices_->open(0).value();
  EXPECT_EQ(best_way(*device_), GateWay::kHost);
}

}  // namespace
}  // namespace trestle
