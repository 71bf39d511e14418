// The costs of links, from the times of messages.
#include "compress/link_estimate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trestle {
namespace {

TimedMessage message(double startups, double bytes, LinkCost cost) {
  return {startups, bytes, startups * cost.startup_s + bytes * cost.per_byte_s};
}

void expect_cost(const LinkEstimate& estimate, LinkCost cost, double within = 1e-6) {
  EXPECT_NEAR(estimate.cost().startup_s, cost.startup_s, within * cost.startup_s);
  EXPECT_NEAR(estimate.cost().per_byte_s, cost.per_byte_s, within * cost.per_byte_s);
}

TEST(LinkEstimate, FindsBothCosts) {
  const LinkCost cost = {2e-5, 1e-9};
  LinkEstimate estimate;
  EXPECT_EQ(estimate.cost().startup_s, 0);
  EXPECT_EQ(estimate.cost().per_byte_s, 0);
  for (const double bytes : {1e3, 1e4, 1e5, 1e6, 1e7}) {
    estimate.add(message(14, 3 * bytes, cost));
    estimate.add(message(3, 7 * bytes, cost));
  }
  expect_cost(estimate, cost);
}

TEST(LinkEstimate, FollowsTheLinks) {
  const LinkCost before = {2e-5, 1e-9}, after = {5e-5, 8e-9};
  LinkEstimate estimate;
  for (int i = 0; i < 50; ++i) estimate.add(message(3, i % 2 == 0 ? 1e3 : 1e6, before));
  expect_cost(estimate, before);
  for (int i = 0; i < 1000; ++i) estimate.add(message(3, i % 2 == 0 ? 1e3 : 1e6, after));
  expect_cost(estimate, after, 1e-3);
}

// The time of the one message that is seen is right, and both costs have grown.
TEST(LinkEstimate, ScalesBothByMessagesOfOneShape) {
  const LinkCost before = {2e-5, 1e-9}, after = {6e-5, 3e-9};
  LinkEstimate estimate;
  for (const double bytes : {1e3, 1e6}) estimate.add(message(3, bytes, before));
  for (int i = 0; i < 2000; ++i) estimate.add(message(3, 1e5, after));
  const LinkCost cost = estimate.cost();
  const double seconds = message(3, 1e5, after).seconds;
  EXPECT_NEAR(message(3, 1e5, cost).seconds, seconds, 1e-6 * seconds);
  expect_cost(estimate, after, 0.3);
}

TEST(LinkEstimate, OfOneShapeAloneIsAStartup) {
  LinkEstimate estimate;
  for (int i = 0; i < 10; ++i) estimate.add({2, 1e6, 1e-2});
  EXPECT_NEAR(estimate.cost().startup_s, 5e-3, 1e-9);
  EXPECT_EQ(estimate.cost().per_byte_s, 0);
}

TEST(LinkEstimate, IsNeverNegative) {
  LinkEstimate more_for_less;
  more_for_less.add({1, 1e6, 1e-4});
  more_for_less.add({1, 1e3, 1e-3});
  EXPECT_GT(more_for_less.cost().startup_s, 0);
  EXPECT_EQ(more_for_less.cost().per_byte_s, 0);
  LinkEstimate convex;
  convex.add({1, 1e3, 1e-7});
  convex.add({1, 1e6, 1e-1});
  EXPECT_EQ(convex.cost().startup_s, 0);
  EXPECT_GT(convex.cost().per_byte_s, 0);
}

TEST(LinkEstimate, LeavesOutWhatIsNoMessage) {
  LinkEstimate estimate;
  estimate.add({0, 1e6, 1});
  estimate.add({1, 1e6, 0});
  estimate.add({1, 1e6, -1});
  estimate.add({1, 1e6, std::nan("")});
  estimate.add({1, 1e6, INFINITY});
  EXPECT_EQ(estimate.cost().startup_s, 0);
  EXPECT_EQ(estimate.cost().per_byte_s, 0);
}

TEST(TimedExchange, HasTheShapesOfTableI) {
  const TimedMessage ring = timed_exchange(SparseCollective::kRing, 100, 8, 0.5);
  EXPECT_EQ(ring.startups, 2 * 7 + 3);
  EXPECT_NEAR(ring.bytes, 400 * (2 * 7 / 8.0 + 3), 1e-9);
  EXPECT_EQ(ring.seconds, 0.5);
  const TimedMessage tree = timed_exchange(SparseCollective::kTree, 100, 8, 0.5);
  EXPECT_EQ(tree.startups, 9);
  EXPECT_NEAR(tree.bytes, 3600, 1e-9);
  const TimedMessage gather = timed_exchange(SparseCollective::kAllGather, 100, 8, 0.5);
  EXPECT_EQ(gather.startups, 3);
  EXPECT_NEAR(gather.bytes, 2 * 400 * 7, 1e-9);
  const TimedMessage var = with_norms(ring, 8);
  EXPECT_EQ(var.startups, ring.startups + 3);
  EXPECT_EQ(var.bytes, ring.bytes + 8 * 7);
  EXPECT_EQ(timed_exchange(SparseCollective::kRing, 100, 1, 0.5).startups, 0) << "one worker sends nothing";
  // 800 bytes of values, 400 of indices.
  EXPECT_DOUBLE_EQ(timed_exchange(SparseCollective::kRing, 100, 8, 0.5, 8).bytes, 800 * 2 * 7.0 / 8 + 400 * 3);
  EXPECT_DOUBLE_EQ(timed_exchange(SparseCollective::kTree, 100, 8, 0.5, 8).bytes, 2 * 800 * 3 + 400 * 3);
  EXPECT_DOUBLE_EQ(timed_exchange(SparseCollective::kAllGather, 100, 8, 0.5, 8).bytes, 1200 * 7);
}

}  // namespace
}  // namespace trestle
