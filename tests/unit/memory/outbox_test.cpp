// Rooms of an outbox never overlap, and what is given back can be lent again.
#include "memory/outbox.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace trestle {
namespace {

constexpr uint64_t kUnit = Outbox::kUnitBytes;

// Memory that is never touched needs not be there.
Region whole(uint64_t bytes) {
  return {reinterpret_cast<std::byte*>(uintptr_t{1} << 40), bytes, {7, 0}, 2};
}

TEST(Outboxes, LendAllOfTheirMemory) {
  Outbox outbox(whole(4 * kUnit));
  std::byte* const base = outbox.region().base;
  EXPECT_EQ(outbox.take(1), base);
  EXPECT_EQ(outbox.take(kUnit + 1), base + kUnit);
  EXPECT_EQ(outbox.take(kUnit + 1), nullptr);
  EXPECT_EQ(outbox.take(kUnit), base + 3 * kUnit);
  EXPECT_EQ(outbox.take(1), nullptr);
  outbox.give_back(base + kUnit);
  EXPECT_EQ(outbox.take(3 * kUnit), nullptr) << "longer than the gap";
  EXPECT_EQ(outbox.take(2 * kUnit), base + kUnit);
}

TEST(Outboxes, AreTooSmallForSomeMessages) {
  Outbox outbox(whole(2 * kUnit));
  EXPECT_EQ(outbox.take(2 * kUnit + 1), nullptr);
  EXPECT_NE(outbox.take(2 * kUnit), nullptr);
  Outbox none(whole(0));
  EXPECT_EQ(none.take(1), nullptr);
}

TEST(Outboxes, PlacesAreSharedOnes) {
  Outbox outbox(whole(4 * kUnit));
  outbox.take(kUnit);
  const std::byte* const second = outbox.take(kUnit);
  const MemPlace place = outbox.region().place_of(second, kUnit);
  EXPECT_EQ(place.id, 7u);
  EXPECT_EQ(place.offset, kUnit);
}

TEST(Outboxes, RoomsNeverOverlap) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Outbox outbox(whole(64 * kUnit));
    std::map<const std::byte*, uint64_t> lent;
    for (int i = 0; i < 500; ++i) {
      if (random() % 2 == 0 && !lent.empty()) {
        auto victim = std::next(lent.begin(), static_cast<long>(random() % lent.size()));
        outbox.give_back(victim->first);
        lent.erase(victim);
        continue;
      }
      const uint64_t bytes = 1 + random() % (9 * kUnit);
      const std::byte* const room = outbox.take(bytes);
      if (room == nullptr) continue;
      ASSERT_GE(room, outbox.region().base);
      ASSERT_LE(room + bytes, outbox.region().base + outbox.region().bytes);
      const auto next = lent.lower_bound(room);
      if (next != lent.end()) {
        ASSERT_LE(room + bytes, next->first) << "seed " << seed;
      }
      if (next != lent.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, room) << "seed " << seed;
      }
      lent.emplace(room, bytes);
    }
    for (const auto& [room, bytes] : lent) outbox.give_back(room);
    EXPECT_NE(outbox.take(64 * kUnit), nullptr) << "seed " << seed;
  }
}

TEST(OutboxesDeathTest, TakeBackOnlyWhatTheyHaveLent) {
  Outbox outbox(whole(4 * kUnit));
  std::byte* const room = outbox.take(2 * kUnit);
  EXPECT_DEATH(outbox.give_back(room + kUnit), "has not lent");
  EXPECT_DEATH(outbox.give_back(room + 1), "has not lent");
  outbox.give_back(room);
  EXPECT_DEATH(outbox.give_back(room), "has not lent");
}

}  // namespace
}  // namespace trestle
