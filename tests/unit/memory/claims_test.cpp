// Claims of one lane share blocks, claims of others never do; what nobody claims is used again, and goes back to its
// source when the pool ends.
#include "memory/claims.h"

#include <gtest/gtest.h>

#include <new>
#include <set>
#include <vector>

namespace trestle {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Gives ordinary memory, and counts its blocks.
class CountingSource : public MemorySource {
 public:
  std::byte* allocate(uint64_t bytes) override {
    if (blocks == most) return nullptr;
    ++blocks;
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}));
  }
  void free(std::byte* memory) override {
    --blocks;
    ::operator delete (memory, std::align_val_t{64});
  }
  int blocks = 0;
  int most = 1000;
};

class Claims : public testing::Test {
 protected:
  using Held = std::shared_ptr<const Claim>;

  Held claim(size_t lane, uint64_t bytes, size_t count = 1) {
    const Held made = pool_.claim({streams_[lane], 0}, bytes, count);
    if (made == nullptr) return made;
    EXPECT_EQ(made->blocks(), count);
    std::set<std::byte*> places;
    for (size_t i = 0; i < count; ++i) {
      EXPECT_GE(made->block(i).bytes, bytes);
      EXPECT_EQ(made->block(i).device, 3);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(made->block(i).base) % 64, 0u);
      EXPECT_TRUE(places.insert(made->block(i).base).second) << "a block twice in one claim";
    }
    return made;
  }

  ByteMeter meter_;
  CountingSource source_;
  ClaimPool pool_{meter_, source_, 3};
  const std::vector<std::shared_ptr<int>> streams_ = {std::make_shared<int>(), std::make_shared<int>()};
};

TEST_F(Claims, OfALaneShareTheirBlocks) {
  const Held first = claim(0, kMiB, 2);
  std::vector<Held> behind;
  for (int i = 0; i < 100; ++i) behind.push_back(claim(0, kMiB - static_cast<uint64_t>(i), 1 + i % 2));
  EXPECT_EQ(source_.blocks, 2);
  EXPECT_EQ(meter_.now(), 2 * kMiB);
  for (const Held& held : behind) {
    const std::byte* const base = held->block(0).base;
    EXPECT_TRUE(base == first->block(0).base || base == first->block(1).base);
  }
}

// One long block and many short ones, by turns.
TEST_F(Claims, OfALaneThatDifferHoldNoMoreThanTheLargestOfEachKind) {
  std::vector<Held> ahead;
  for (int i = 0; i < 100; ++i) {
    ahead.push_back(claim(0, 8 * kMiB, 1));
    ahead.push_back(claim(0, kMiB, 4));
  }
  EXPECT_EQ(source_.blocks, 4);
  EXPECT_EQ(meter_.now(), 11 * kMiB);
}

TEST_F(Claims, OfLanesThatMayRunAtTheSameTimeAreApart) {
  const Held first = claim(0, 1000);
  const Held second = claim(1, 1000);
  EXPECT_NE(first->block(0).base, second->block(0).base);
  const Held third = pool_.claim({streams_[0], 1}, 1000);
  EXPECT_NE(third->block(0).base, first->block(0).base);
  EXPECT_NE(third->block(0).base, second->block(0).base);
  EXPECT_EQ(source_.blocks, 3);
}

TEST_F(Claims, ThatEndedGiveTheirBlocksToOthers) {
  Held first = claim(0, 1000);
  Held behind = claim(0, 1000);
  const std::byte* const base = first->block(0).base;
  first.reset();
  EXPECT_NE(claim(1, 1000)->block(0).base, base) << "the lane still has it";
  behind.reset();
  EXPECT_EQ(source_.blocks, 2) << "blocks are kept";
  const Held second = claim(1, 1000);
  const Held third = claim(0, 1000);
  EXPECT_EQ(source_.blocks, 2);
  EXPECT_NE(second->block(0).base, third->block(0).base);
}

// Another stream may be made where one was that has calls under way.
TEST_F(Claims, OfAStreamThatIsGoneStayApart) {
  auto stream = std::make_shared<int>();
  const Held first = pool_.claim({stream, 0}, 1000);
  stream.reset();
  const Held second = pool_.claim({std::make_shared<int>(), 0}, 1000);
  EXPECT_NE(first->block(0).base, second->block(0).base);
}

TEST_F(Claims, TakeTheSmallestBlockThatSuffices) {
  Held large = claim(0, 4 * kMiB);
  Held small = claim(1, kMiB);
  const std::byte* const place = small->block(0).base;
  large.reset();
  small.reset();
  EXPECT_EQ(claim(0, 1000)->block(0).base, place);
}

// Memory of a device is scarce: a long block does not take twice what was asked for.
TEST_F(Claims, TakeLittleMoreThanALongRequest) {
  const Held first = claim(0, 3 * kMiB);
  EXPECT_EQ(meter_.now(), 4 * kMiB) << "short ones are of few sizes";
  const Held second = claim(1, 257 * kMiB);
  EXPECT_LT(meter_.now(), 4 * kMiB + 257 * kMiB + 64 * kMiB);
  EXPECT_GE(meter_.now(), 4 * kMiB + 257 * kMiB);
}

TEST_F(Claims, WithoutMemoryHoldNothing) {
  source_.most = 2;
  EXPECT_EQ(claim(0, 1000, 3), nullptr);
  const Held held = claim(1, 1000, 2);
  EXPECT_EQ(source_.blocks, 2);
}

TEST(ClaimPool, GivesItsMemoryBackAtItsEnd) {
  ByteMeter meter;
  CountingSource source;
  {
    ClaimPool pool(meter, source, 3);
    for (int i = 0; i < 10; ++i) pool.claim({}, 100'000, 3);
    EXPECT_EQ(source.blocks, 3);
    EXPECT_EQ(meter.now(), 3 * 131'072u) << "a size that others can use too";
  }
  EXPECT_EQ(source.blocks, 0);
  EXPECT_EQ(meter.now(), 0u);
}

}  // namespace
}  // namespace trestle
