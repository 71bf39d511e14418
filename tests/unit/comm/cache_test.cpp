// The cache of prepared calls: which calls are planned again, and when.
#include <gtest/gtest.h>

#include <set>

#include "comm/calls/prepared_cache.h"
#include "comm/calls/schedule_cache.h"

namespace trestle {
namespace cache_test {
namespace {

struct Caches : testing::Test {
  std::set<const Prepared*> forgotten;
  int built = 0;
  PreparedCache cache{[this](const Prepared* prepared) { forgotten.insert(prepared); }};
  std::function<Result<PreparedCache::Entry>()> build = [this]() -> Result<PreparedCache::Entry> {
    ++built;
    return PreparedCache::Entry(std::make_shared<Prepared>());
  };

  static PreparedKey key(uint64_t count) {
    PreparedKey result;
    result.request.count = count;
    return result;
  }
  const Prepared* get(uint64_t count) { return cache.get(key(count), build).value().get(); }
};

TEST_F(Caches, ACallIsPlannedOnce) {
  const Prepared* first = get(7);
  EXPECT_EQ(get(7), first);
  EXPECT_NE(get(8), first);
  EXPECT_EQ(built, 2);
}

TEST_F(Caches, WhatIsNotPinnedGoesWhenItIsFull) {
  const auto kept = cache.get(key(1), build).value();  // kept, so that another object cannot get its memory
  for (uint64_t count = 1000; count < 1300; ++count) get(count);
  EXPECT_EQ(forgotten.count(kept.get()), 1u);
  EXPECT_NE(get(1), kept.get());
}

// Two operators of one kind differ. An operator made at the address of another one must not find that one's plans.
TEST_F(Caches, AnOperatorOfTheCallersIsItself) {
  const auto with = [](SharedOp op) {
    PreparedKey result = key(7);
    result.request.op = kUserCommutative;
    result.request.custom = std::move(op);
    return result;
  };
  SharedOp first = std::make_shared<const CustomOp>();
  const auto second = std::make_shared<const CustomOp>();
  const auto one = cache.get(with(first), build).value();
  EXPECT_EQ(cache.get(with(first), build).value(), one);
  EXPECT_NE(cache.get(with(second), build).value(), one);
  const auto pinned = cache.pin(with(second), build).value();
  const std::weak_ptr<const CustomOp> alive = first;
  cache.drop(first.get());
  cache.drop(second.get());
  EXPECT_EQ(forgotten, std::set<const Prepared*>{one.get()});
  first.reset();
  EXPECT_TRUE(alive.expired()) << "the cache keeps what was destroyed";
  EXPECT_EQ(cache.get(with(second), build).value(), pinned);
  cache.unpin(with(second));
}

TEST_F(Caches, WhatIsPinnedStaysUntilItIsUnpinnedAsOften) {
  const auto pinned = cache.pin(key(1), build).value();
  ASSERT_EQ(cache.pin(key(1), build).value(), pinned);
  cache.unpin(key(1));
  for (uint64_t count = 1000; count < 1600; ++count) get(count);
  const int before = built;
  EXPECT_EQ(get(1), pinned.get());
  EXPECT_EQ(built, before) << "it was not planned again";
  EXPECT_EQ(forgotten.count(pinned.get()), 0u);
  cache.unpin(key(1));
  for (uint64_t count = 2000; count < 2600; ++count) get(count);
  EXPECT_EQ(forgotten.count(pinned.get()), 1u);
}

// Many persistent requests leave room in the cache for other calls.
TEST_F(Caches, PinsDoNotCount) {
  for (uint64_t count = 0; count < 400; ++count) ASSERT_TRUE(cache.pin(key(count), build).ok());
  get(1000);
  get(1001);
  const int before = built;
  get(1000);
  get(1001);
  EXPECT_EQ(built, before);
  for (uint64_t count = 0; count < 400; ++count) cache.unpin(key(count));
}

TEST_F(Caches, AnErrorIsNotKept) {
  const auto fails = []() -> Result<PreparedCache::Entry> { return Error{Code::kInvalidUsage, "no"}; };
  EXPECT_FALSE(cache.get(key(1), fails).ok());
  EXPECT_NE(get(1), nullptr);
}

TEST(Schedules, ArePlannedOncePerWhatTheyFollowFrom) {
  ScheduleCache cache;
  int planned = 0;
  const auto plan = [&]() -> Result<Schedule> {
    ++planned;
    return Schedule{};
  };
  SelectionRequest request;
  const ScheduleCache::Entry first = cache.get(request, "", plan).value();
  EXPECT_EQ(cache.get(request, "", plan).value(), first);
  EXPECT_EQ(planned, 1);
  const auto planned_for = [&](auto change) {
    SelectionRequest other = request;
    change(other);
    const int before = planned;
    EXPECT_NE(cache.get(other, "", plan).value(), first);
    return planned - before;
  };
  EXPECT_EQ(planned_for([](SelectionRequest& r) { r.collective = Collective::kReduce; }), 1);
  EXPECT_EQ(planned_for([](SelectionRequest& r) { r.bytes = 8; }), 1);
  EXPECT_EQ(planned_for([](SelectionRequest& r) { r.element_bytes = 8; }), 1);
  EXPECT_EQ(planned_for([](SelectionRequest& r) { r.root = 1; }), 1);
  EXPECT_EQ(planned_for([](SelectionRequest& r) { r.decoupled = true; }), 1);
  EXPECT_NE(cache.get(request, " algo=ring", plan).value(), first);
  // Errors are not cached, and the cache is bounded.
  request.bytes = 1;
  EXPECT_FALSE(cache.get(request, "", [] { return Result<Schedule>(Error{Code::kInvalidArgument, "no"}); }).ok());
  EXPECT_TRUE(cache.get(request, "", plan).ok());
  for (request.bytes = 1000; request.bytes < 2000; ++request.bytes) cache.get(request, "", plan).value();
  planned = 0;
  EXPECT_NE(cache.get({}, "", plan).value(), first);
  EXPECT_EQ(planned, 1);
}

}  // namespace
}  // namespace cache_test
}  // namespace trestle
