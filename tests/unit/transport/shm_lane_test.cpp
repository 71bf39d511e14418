// Lanes, slots and tag tables: single parts of the shared-memory transport.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <thread>
#include <vector>

#include "transport/shm/lane.h"
#include "transport/shm/store_choice.h"

namespace trestle {
namespace {

TEST(LaneShape, FitsARankThatTalksToEverybody) {
  for (const int32_t ranks : {2, 3, 8, 16, 64}) {
    const LaneShape shape = lane_shape(ranks);
    EXPECT_TRUE(shape.sane());
    EXPECT_GE(shape.data_bytes(), 128u * 1024);
    if (ranks > 8) continue;
    const size_t all = (shape.control_bytes() + shape.data_bytes()) * static_cast<size_t>(ranks - 1);
    EXPECT_LT(all, size_t{4} << 20) << ranks << " ranks";
  }
}

struct LanePair {
  OutLane out;
  InLane in;
  explicit LanePair(LaneShape shape = {}) {
    EXPECT_TRUE(out.create(shape).ok());
    EXPECT_TRUE(in.adopt(UniqueFd(dup(out.control().fd())), out.control().bytes()).ok());
  }
};

TEST(Lane, CarriesDescriptorsInOrderBetweenThreads) {
  LanePair lane;
  constexpr uint64_t kCount = 140'000;  // sequence numbers wrap around twice
  std::thread producer([&] {
    for (uint64_t i = 0; i < kCount; ++i) {
      while (lane.out.room(1) == 0) std::this_thread::yield();
      Descriptor descriptor;
      descriptor.kind = DescriptorKind::kAsk;
      descriptor.bytes = i;
      descriptor.tag = {i * 3, static_cast<uint32_t>(i), 7, ~i, i << 30};
      lane.out.push(descriptor);
    }
  });
  for (uint64_t i = 0; i < kCount; ++i) {
    Descriptor descriptor;
    while (!lane.in.peek(descriptor)) std::this_thread::yield();
    lane.in.advance();
    ASSERT_EQ(descriptor.bytes, i);
    ASSERT_EQ(descriptor.tag, (MessageTag{i * 3, static_cast<uint32_t>(i), 7, ~i}));
    ASSERT_EQ(descriptor.tag.check, i << 30);
  }
  producer.join();
  EXPECT_FALSE(lane.in.waiting());
}

TEST(Lane, TellsWhenItIsFull) {
  LanePair lane;
  Descriptor descriptor;
  descriptor.kind = DescriptorKind::kAsk;
  const uint32_t most = lane.out.shape().descriptors;
  for (uint32_t i = 0; i < most; ++i) {
    ASSERT_NE(lane.out.room(1), 0u);
    lane.out.push(descriptor);
  }
  EXPECT_EQ(lane.out.room(1), 0u);
  for (uint32_t i = 0; i < most; ++i) {
    ASSERT_TRUE(lane.in.peek(descriptor));
    lane.in.advance();
  }
  EXPECT_EQ(lane.out.room(most), most);
}

TEST(Lane, GivesSlotsBackInAnyOrder) {
  LanePair lane;
  SlotPool& pool = lane.out.small();
  std::mt19937 random(1);
  std::vector<uint32_t> held;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && pool.available(1) != 0) {
      const uint32_t slot = pool.take();
      ASSERT_EQ(std::count(held.begin(), held.end(), slot), 0) << "a slot was handed out twice";
      held.push_back(slot);
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      lane.in.give_back_small(held.back());
      held.pop_back();
    }
    ASSERT_EQ(pool.available(64), pool.total() - held.size());
  }
}

TEST(Lane, RingsOnceForEverySleep) {
  LanePair lane;
  EXPECT_FALSE(lane.in.take_asleep());
  lane.out.set_asleep(true);
  EXPECT_TRUE(lane.in.take_asleep());
  EXPECT_FALSE(lane.in.take_asleep());
  lane.out.set_asleep(true);
  lane.out.set_asleep(false);
  EXPECT_FALSE(lane.in.take_asleep());
}

TEST(Lane, RefusesAnUnknownShape) {
  OutLane out;
  ASSERT_TRUE(out.create({}).ok());
  reinterpret_cast<LaneHeader*>(out.control().data())->shape.descriptors = 3;
  InLane in;
  const Status status = in.adopt(UniqueFd(dup(out.control().fd())), out.control().bytes());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kRemoteError);
  reinterpret_cast<LaneHeader*>(out.control().data())->shape = LaneShape{128, 64, 1 << 20, 16, 65536};
  EXPECT_FALSE(in.adopt(UniqueFd(dup(out.control().fd())), out.control().bytes()).ok()) << "slots beyond the end";
}

TEST(StoreChoice, FollowsWhatIsMeasured) {
  StoreChoice choice;
  // The number of slots written since the times changed, by kind.
  const auto run = [&](int64_t cached_ns, int64_t streaming_ns) {
    std::array<int, 2> slots{};
    for (int i = 0; i < 2000; ++i) {
      ++slots[choice.streaming() ? 1 : 0];
      // Every third write is interrupted.
      choice.took((choice.streaming() ? streaming_ns : cached_ns) + (i % 3 == 0 ? 1'000'000 : 0));
    }
    return slots;
  };
  EXPECT_FALSE(choice.streaming());
  const auto near = run(4000, 7000);
  EXPECT_GT(near[0], near[1] * 10);
  EXPECT_GT(near[1], 0) << "the other way was never tried";
  const auto far = run(20'000, 7000);
  EXPECT_GT(far[1], far[0] * 3);
  const auto near_again = run(4000, 7000);
  EXPECT_GT(near_again[0], near_again[1] * 3);
}

}  // namespace
}  // namespace trestle
