// Staging is lent to one operation at a time, reused, and never more than operations have needed at once. Lending and
// returning it allocates and frees nothing.
#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <utility>

#include "memory/staging.h"

namespace trestle {
namespace {

// Lends a block as the engine does: if there is none, chores come first.
Staging lend(StagingPool& pool, uint64_t bytes) {
  Staging lent = pool.take(bytes);
  if (lent) return lent;
  EXPECT_TRUE(pool.has_chores());
  EXPECT_EQ(pool.chores(), StagingPool::Chores::kProvided);
  return pool.take(bytes);
}

TEST(Staging, IsThereOnceItWasReserved) {
  ByteMeter meter;
  StagingPool pool(meter);
  pool.reserve(0);
  EXPECT_EQ(meter.now(), 0u);
  pool.reserve(1000);
  EXPECT_EQ(meter.now(), 1000u);
  pool.reserve(500);
  EXPECT_EQ(meter.now(), 1000u) << "the block is large enough";
  Staging lent = pool.take(1000);
  EXPECT_EQ(meter.now(), 1000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(lent.region().base) % 64, 0u);
  EXPECT_GE(lent.region().bytes, 1000u);
  EXPECT_FALSE(lent.region().is_shared());
  pool.reserve(1000);
  EXPECT_EQ(meter.now(), 1000u) << "the next operation waits for this one";
}

// Both happen under the progress lock.
TEST(Staging, IsNeitherAllocatedNorFreedByALoan) {
  ByteMeter meter;
  StagingPool pool(meter);
  pool.reserve(1000);
  EXPECT_FALSE(pool.has_chores());
  Staging first = pool.take(1000);
  EXPECT_TRUE(first);
  EXPECT_FALSE(pool.take(2000));
  EXPECT_FALSE(pool.take(500));
  EXPECT_EQ(meter.now(), 1000u);
  ASSERT_TRUE(pool.has_chores());
  EXPECT_EQ(pool.chores(), StagingPool::Chores::kProvided);
  EXPECT_EQ(meter.now(), 3000u) << "one block at a time, for the largest that was missed";
  EXPECT_FALSE(pool.has_chores());
  Staging second = pool.take(2000);
  EXPECT_TRUE(second);
  EXPECT_FALSE(pool.take(500));
  first.give_back();
  EXPECT_EQ(pool.chores(), StagingPool::Chores::kProvided) << "what was missed has been given back";
  EXPECT_EQ(meter.now(), 3000u) << "nothing was allocated for it";
  EXPECT_EQ(pool.chores(), StagingPool::Chores::kNothing);
}

TEST(Staging, IsReservedForOperationsThatBeginTogether) {
  ByteMeter meter;
  StagingPool pool(meter);
  pool.reserve(1000, 3);
  EXPECT_EQ(meter.now(), 3000u);
  pool.reserve(500, 2);
  EXPECT_EQ(meter.now(), 3000u);
  const Staging first = pool.take(1000);
  const Staging second = pool.take(1000);
  const Staging third = pool.take(1000);
  EXPECT_TRUE(first && second && third);
  EXPECT_FALSE(pool.has_chores());
}

TEST(Staging, IsLentToOneOperationAtATime) {
  ByteMeter meter;
  StagingPool pool(meter);
  Staging first = lend(pool, 1000);
  Staging second = lend(pool, 1000);
  std::memset(first.region().base, 1, 1000);
  std::memset(second.region().base, 2, 1000);
  EXPECT_EQ(first.region().base[999], std::byte{1});
  EXPECT_EQ(meter.now(), 2000u);
  std::byte* const place = first.region().base;
  first.give_back();
  first.give_back();
  EXPECT_EQ(first.region().base, nullptr);
  EXPECT_EQ(meter.now(), 2000u) << "two have run at once, and may again";
  EXPECT_EQ(pool.take(10).region().base, place);
}

TEST(Staging, GoesToTheSmallestBlockThatIsLargeEnough) {
  ByteMeter meter;
  StagingPool pool(meter);
  Staging small = lend(pool, 100);
  Staging large = lend(pool, 10'000);
  std::byte* const small_place = small.region().base;
  std::byte* const large_place = large.region().base;
  large.give_back();
  small.give_back();
  const Staging a = pool.take(50);
  EXPECT_EQ(a.region().base, small_place);
  const Staging b = pool.take(50);
  EXPECT_EQ(b.region().base, large_place);
}

// A program that runs one operation at a time, of ever greater size, holds the greatest only.
TEST(Staging, DoesNotKeepBlocksThatWereTooSmall) {
  ByteMeter meter;
  StagingPool pool(meter);
  for (uint64_t bytes = 64; bytes <= 64 * 1024; bytes *= 2) {
    pool.reserve(bytes);
    const Staging lent = pool.take(bytes);
    EXPECT_EQ(lent.region().bytes, bytes);
  }
  EXPECT_EQ(meter.now(), 64u * 1024);
  // A large one is reserved while a small one runs; the large one stays.
  Staging running = pool.take(64);
  pool.reserve(1 << 20);
  running.give_back();
  EXPECT_EQ(meter.now(), 1u << 20);
  EXPECT_TRUE(pool.has_chores()) << "the small one is not freed by the loan's end";
  EXPECT_EQ(pool.chores(), StagingPool::Chores::kNothing);
  EXPECT_FALSE(pool.has_chores());
  EXPECT_TRUE(pool.take(1 << 20));
}

TEST(Staging, MovesWithItsOwner) {
  ByteMeter meter;
  StagingPool pool(meter);
  Staging a = lend(pool, 100);
  Staging b = std::move(a);
  EXPECT_EQ(a.region().base, nullptr);
  std::byte* const place = b.region().base;
  a = lend(pool, 200);
  b = std::move(a);  // gives the first block back
  EXPECT_EQ(pool.take(100).region().base, place);
}

}  // namespace
}  // namespace trestle
