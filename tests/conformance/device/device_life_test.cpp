// How operations on a device sleep, fail, time out and end while their work is under way.
#include <gtest/gtest.h>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "conformance/device/device_ranks.h"
#include "engine/prepare/bounces.h"

namespace trestle {
namespace {

constexpr int64_t kDecadesNs = int64_t{1} << 60;

DeviceCall all_reduce(const Topology& topology, uint64_t count, ReduceOp op = ReduceOp::kSum) {
  PrepareRequest request;
  request.collective = Collective::kAllReduce;
  request.count = count;
  request.op = op;
  DeviceCall call;
  call.request = [request](int32_t) { return request; };
  call.schedule = schedule_of(request, topology, "", 1).value();
  return call;
}

// With peer paths or without.
class DeviceLife : public testing::TestWithParam<bool> {
 protected:
  void begin(DeviceOptions options, int64_t timeout_ns = 0) {
    options.paths = [with = GetParam()](int32_t, int32_t) { return with; };
    ranks_ = std::make_unique<DeviceRanks>(topology_, options);
    DeviceCall call = all_reduce(topology_, 5000);
    call.timeout_ns = timeout_ns;
    ASSERT_TRUE(ranks_->begin(call).ok());
  }
  void drive_until_quiet() {
    while (ranks_->drive()) {
    }
  }
  void expect_nothing_written() {
    for (const Bytes& result : ranks_->results()) {
      EXPECT_TRUE(std::ranges::all_of(result, [](std::byte byte) { return byte == std::byte{0xab}; }));
    }
  }

  // Rank 0 fails, and rank 1 hears of it as the control mesh says. Each is ended by a thread of its own.
  void end_both() {
    ranks_->engine(0).fail({Code::kAborted, "aborted"});
    ranks_->engine(1).fail({Code::kRemoteError, "the other rank was aborted"});
    std::thread other([this] { ranks_->engine(1).close(0); });
    ranks_->engine(0).close(0);
    other.join();
  }

  const Topology topology_ = device_grid({2});
  std::unique_ptr<DeviceRanks> ranks_;
};

TEST_P(DeviceLife, WorkThatHasNotBegunIsDroppedByAFailure) {
  begin({.most_delay_ns = kDecadesNs});
  drive_until_quiet();
  const Standing standing = ranks_->engine(0).standing({1});
  EXPECT_NE(standing.description.find("its own copies and reductions"), std::string::npos) << standing.description;
  EXPECT_EQ(standing.awaited, -1);
  for (int32_t r = 0; r < 2; ++r) ranks_->engine(r).fail({Code::kAborted, "aborted"});
  drive_until_quiet();
  EXPECT_EQ(ranks_->pending(), 0u);
  expect_nothing_written();
}

TEST_P(DeviceLife, ADeadlinePassesWhileWorkIsUnderWay) {
  begin({.most_delay_ns = kDecadesNs}, 1);
  while (!ranks_->engine(0).failed()) ranks_->drive();
  EXPECT_EQ(ranks_->engine(0).failure()->code, Code::kTimeout);
  while (ranks_->pending() != 0) ranks_->drive();
  expect_nothing_written();
}

TEST_P(DeviceLife, ClosingEndsTheQueue) {
  begin({.most_delay_ns = kDecadesNs});
  drive_until_quiet();
  ranks_->close();
  expect_nothing_written();
}

// All memory of the device and all pinned memory goes back with the engine.
TEST(DevicePlaces, EndWithoutALeak) {
  PretendDevice device(0);
  {
    EngineConfig config;
    config.sleeps = false;
    config.clock = &monotonic_clock();
    config.device = device.place(0, 0);
    Engine engine(std::move(config), {}, {}, nullptr);
    Prepared prepared;
    prepared.place = MemoryPlace::kDevice;
    prepared.staging_bytes = 1000;
    prepared.bounce_bytes = 1000;
    prepared.bounce_blocks = 2;
    const auto claims = engine.reserve(prepared, {});
    ASSERT_TRUE(claims.ok());
    EXPECT_EQ(device.blocks(), 3u);
    EXPECT_TRUE(claims.value().staging->block(0).on_device());
    for (size_t i = 0; i < 2; ++i) EXPECT_FALSE(claims.value().bounces->block(i).on_device());
  }
  EXPECT_EQ(device.blocks(), 0u);
}

// Nobody polls: the end of work wakes the rank that sleeps.
TEST_P(DeviceLife, TheEndOfWorkWakesASleeper) {
  begin({.most_delay_ns = 1'000'000, .sleeps = true});
  while (ranks_->pending() != 0) {
    if (ranks_->drive()) continue;
    for (int32_t r = 0; r < 2; ++r) {
      Engine& engine = ranks_->engine(r);
      if (engine.pending() != 0) engine.sleep(10, [] { return false; });
      ranks_->drive();
    }
  }
  EXPECT_TRUE(ranks_->inputs_unchanged());
  EXPECT_EQ(ranks_->results()[0], ranks_->results()[1]);
}

// Each has it before it is queued, and nothing is allocated for it afterwards.
TEST_P(DeviceLife, OperationsAtTheSameTimeGetMemoryOfTheirOwn) {
  begin({});
  const DeviceCall call = all_reduce(topology_, 5000);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(ranks_->begin(call).ok());
  const size_t blocks[] = {ranks_->device(0).blocks(), ranks_->device(1).blocks()};
  EXPECT_TRUE(ranks_->finish());
  EXPECT_EQ(ranks_->results()[0], ranks_->results()[1]);
  for (int32_t r = 0; r < 2; ++r) EXPECT_EQ(ranks_->device(r).blocks(), blocks[r]);
}

TEST_P(DeviceLife, ARankMayEndAtAnyTime) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    begin({.seed = seed, .most_delay_ns = 100'000, .segment_bytes = 512});
    for (uint64_t round = 0; round < seed; ++round) ranks_->drive();
    end_both();
    EXPECT_EQ(ranks_->pending(), 0u);
    EXPECT_TRUE(ranks_->inputs_unchanged());
  }
}

// The user may free a rank's memory once its call has ended.
TEST(DevicePeerPaths, NobodyReadsTheMemoryOfARankThatHasEnded) {
  const Topology topology = device_grid({2});
  DeviceOptions options;
  options.paths = [](int32_t, int32_t) { return true; };
  DeviceRanks ranks(topology, options);
  ranks.device(1).hold_reductions();
  ASSERT_TRUE(ranks.begin(all_reduce(topology, 5000)).ok());
  while (PretendDevice::held_reductions() == 0) ranks.drive();
  std::atomic<bool> ended{false};
  std::thread first([&] {
    ranks.engine(0).fail({Code::kAborted, "aborted"});
    ranks.engine(0).close(0);
    ranks.device(0).revoke();
    ended = true;
  });
  std::thread second([&] {
    ranks.engine(1).fail({Code::kRemoteError, "the other rank was aborted"});  // as the control mesh says
    ranks.engine(1).close(0);
  });
  for (int look = 0; look < 1000; ++look) {
    EXPECT_FALSE(ended);
    ::sched_yield();
  }
  PretendDevice::let_reductions_go_on();
  first.join();
  second.join();
  EXPECT_EQ(ranks.pending(), 0u);
}

INSTANTIATE_TEST_SUITE_P(PeerPaths, DeviceLife, testing::Bool(),
                         [](const auto& with) { return with.param ? "With" : "Without"; });

TEST(DevicePlaces, AUsersFunctionIsRefusedWhenTheCallIsPrepared) {
  const Topology topology = device_grid({2});
  PrepareRequest request;
  request.op = kUserCommutative;
  request.custom = std::make_shared<CustomOp>();
  request.place = MemoryPlace::kDevice;
  PrepareContext context;
  context.topology = &topology;
  const auto prepared = prepare(request, {}, context);
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().code, Code::kInvalidUsage);
  EXPECT_NE(prepared.error().message.find("cannot reach memory of a device"), std::string::npos);
}

// ---- bounce buffers

// The first phase of a call with segments of 4 MiB.
PreparedPhase first_phase(Collective collective, const std::string& algorithm, int32_t ranks, uint64_t count) {
  const Topology topology = device_grid({ranks});
  PrepareRequest request;
  request.collective = collective;
  request.count = count;
  request.place = MemoryPlace::kDevice;
  PrepareContext context;
  context.topology = &topology;
  context.segment_bytes = [](const void*, const std::vector<int32_t>&) { return uint64_t{4} << 20; };
  const auto prepared = prepare(request, schedule_of(request, topology, algorithm, 1).value(), context);
  EXPECT_TRUE(prepared.ok()) << prepared.error().message;
  EXPECT_EQ(prepared.value()->bounce_bytes, prepared.value()->phases[0][0].bounce_bytes);
  return prepared.value()->phases[0][0];
}

uint64_t end_of(const StepBounce& bounce) {
  return bounce.at(bounce.slots - 1, bounce.messages - 1) + bounce.message_bytes;
}

// Whether `step` begins when `earlier` is complete, because of rooms.
bool follows(const PreparedPhase& phase, uint32_t step, uint32_t earlier) {
  while (step != kNoStep && step > earlier) step = phase.bounces[step].before;
  return step == earlier;
}

void expect_rooms_apart(const PreparedPhase& phase) {
  for (uint32_t s = 0; s < phase.bounces.size(); ++s) {
    const StepBounce& bounce = phase.bounces[s];
    EXPECT_GE(bounce.slots, 1u);
    EXPECT_LE(bounce.slots, kSegmentsInFlight);
    if (bounce.messages == 0) continue;
    EXPECT_GE(bounce.message_bytes, std::min(phase.step_segment_bytes[s], phase.step_bytes[s]));
    EXPECT_LE(end_of(bounce), phase.bounce_bytes);
    for (uint32_t e = 0; e < s; ++e) {
      const StepBounce& earlier = phase.bounces[e];
      if (earlier.messages == 0 || end_of(earlier) <= bounce.offset || end_of(bounce) <= earlier.offset) continue;
      EXPECT_TRUE(follows(phase, s, e)) << "steps " << e << " and " << s << " are in one room at the same time";
    }
  }
}

TEST(Bounces, OfStepsAtTheSameTimeDoNotOverlap) {
  for (const int32_t ranks : {2, 5, 8, 64}) {
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kAllToAll}) {
      for (const uint64_t count : {uint64_t{1000}, uint64_t{1} << 20, uint64_t{64} << 20}) {
        SCOPED_TRACE(std::string(to_string(collective)) + " of " + std::to_string(count) + " elements, " +
                     std::to_string(ranks) + " ranks");
        expect_rooms_apart(first_phase(collective, "", ranks, count));
      }
    }
  }
}

// A ring of many ranks has many steps, of which few run at the same time.
TEST(Bounces, DoNotGrowWithTheNumberOfSteps) {
  for (const int32_t ranks : {4, 16, 64, 256}) {
    for (const Collective collective : {Collective::kReduceScatter, Collective::kAllGather}) {
      SCOPED_TRACE(std::string(to_string(collective)) + ", " + std::to_string(ranks) + " ranks");
      const PreparedPhase phase = first_phase(collective, "ring", ranks, uint64_t{32} << 20);
      EXPECT_EQ(phase.bounce_bytes, kBounceBytes);
      for (const StepBounce& bounce : phase.bounces) EXPECT_EQ(bounce.slots, kSegmentsInFlight);
      expect_rooms_apart(phase);
    }
  }
}

}  // namespace
}  // namespace trestle
