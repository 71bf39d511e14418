// DeFT's buckets, their parts, and the greedy placement.
#include <gtest/gtest.h>

#include "gradient/deft/place.h"
#include "unit/gradient/deft_systems.h"
#include "unit/gradient/deft_vectors.h"

namespace trestle {
namespace {

TEST(DeftBuckets, OfVgg19HaveTheSumsOfTheTables) {
  EXPECT_EQ(comm_us(vgg19_buckets()), 257'725u);
  EXPECT_EQ(comm_us(vgg19_buckets(Vgg19Table::kPrinted)), 247'725u);
  EXPECT_EQ(forward_us(vgg19_buckets()) + backward_us(vgg19_buckets()), 130'285u);
  // The fully connected buckets lie on a line through the other two: parameters against microseconds.
  const double slope = (31754.0 - 8651.0) / (16'777'216.0 - 4'096'000.0);
  EXPECT_NEAR(8651 + slope * (102'760'448.0 - 4'096'000.0), 188'401, 1);
}

TEST(DeftBuckets, AreMadeOfGroupsOfTensors) {
  GradientWorkload workload;
  workload.tensors = {{"a", 100, 1e-6, 2e-6}, {"b", 200, 3e-6, 4e-6}, {"c", 0, 5e-6, 6e-6}};
  const std::vector<TensorGroup> groups = {{0, 1}, {2, 2}};
  const std::vector<DeftBucket> expected = {{4, 6, 310}, {5, 6, 0}};
  EXPECT_EQ(deft_buckets(workload, groups, {10e-6, 1e-6}), expected);
}

TEST(DeftBuckets, AreRefusedWithASentence) {
  const std::vector<DeftBucket> good = {{1, 1, 1}};
  const auto refused = [](DeftSystem system) {
    const Status status = check_deft(system);
    return !status.ok() && status.error().code == Code::kInvalidArgument && !status.error().message.empty();
  };
  EXPECT_FALSE(refused({good, one_link()}));
  EXPECT_TRUE(refused({{}, one_link()}));
  EXPECT_TRUE(refused({good, {}}));
  EXPECT_TRUE(refused({good, {DeftLink{1650}}}));
  EXPECT_TRUE(refused({good, {DeftLink{}, DeftLink{999}}}));
  EXPECT_TRUE(refused({{{0, 1, 1}}, one_link()})) << "nothing fits into a forward pass without time";
  EXPECT_TRUE(refused({{{1, 1, UINT64_MAX}}, one_link()}));
  EXPECT_TRUE(refused({{{1, 60'000'000, 1}, {1, 60'000'000, 1}}, one_link()}));
}

TEST(DeftPartition, OfVgg19IsTheWorkedCase) {
  const DeftVggVector expected;
  const std::vector<DeftItem> items = expect_value(deft_partition({vgg19_buckets(), two_links()}));
  ASSERT_EQ(items.size(), expected.piece_bucket.size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].bucket, expected.piece_bucket[i]) << i;
    EXPECT_EQ(items[i].comm_us, expected.piece_comm_us[i]) << i;
  }
  EXPECT_EQ(items[3].parts, 9u);
  EXPECT_EQ(items[12].parts, 2u);
}

TEST(DeftPartition, IsTheLeastNumberOfPartsThatFit) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    const DeftSystem system = random_deft_system(rng);
    uint64_t slowest = 0;
    for (const DeftLink& link : system.links) slowest = std::max<uint64_t>(slowest, link.slowdown_permille);
    const uint64_t forward_ns = forward_us(system.buckets) * 1000;
    std::vector<uint64_t> sums(system.buckets.size(), 0);
    for (const DeftItem& item : expect_value(deft_partition(system))) {
      const uint64_t comm = system.buckets[item.bucket].comm_us;
      sums[item.bucket] += item.comm_us;
      EXPECT_LT(comm * slowest, forward_ns * item.parts);
      EXPECT_GE(comm * slowest, forward_ns * (item.parts - 1));
    }
    for (size_t b = 0; b < sums.size(); ++b) EXPECT_GE(sums[b], system.buckets[b].comm_us);
  }
}

TEST(DeftPartition, RefusesTooManyParts) {
  EXPECT_FALSE(deft_partition({{{1, 1, 5000}}, one_link()}).ok());
  EXPECT_EQ(expect_value(deft_partition({{{1, 1, 4095}}, one_link()})).size(), 4096u);
}

TEST(DeftPlacement, IsTheWorkedCase) {
  const DeftPlacementVector expected;
  std::vector<DeftItem> items(1);  // item 0 is not placed
  for (const uint64_t comm : expected.comm_us) items.push_back({0, 0, 1, comm});
  const std::vector<uint32_t> ids = {1, 2, 3, 4, 5};
  const DeftPlaced placed = deft_place(items, ids, expected.capacities_us);
  EXPECT_EQ(placed.sends, expected.sends);
  EXPECT_EQ(placed.left_us, (std::vector<uint64_t>{1, 0}));
}

TEST(DeftPlacement, GivesTiesToTheHigherItemAndTheLowerLink) {
  const std::vector<DeftItem> items(3, DeftItem{0, 0, 1, 5});
  const std::vector<uint32_t> ids = {0, 1, 2};
  const DeftPlaced placed = deft_place(items, ids, std::vector<uint64_t>{5, 5});
  EXPECT_EQ(placed.sends, (DeftSends{{2}, {1}}));
}

}  // namespace
}  // namespace trestle
