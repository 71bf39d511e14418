// How many blocks a plan's buffers have.
#include <gtest/gtest.h>

#include <utility>

#include "plan/plan.h"

namespace trestle {
namespace {

TEST(PlanValue, BlockCountsFollowTheTable) {
  Plan plan;
  plan.group_size = 5;
  plan.blocks = 3;
  plan.root = 2;
  auto counts = [&](PhaseKind kind, int32_t me) {
    plan.kind = kind;
    plan.me = me;
    return std::pair(input_blocks(plan), output_blocks(plan));
  };
  using Pair = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(counts(PhaseKind::kReduceScatter, 0), Pair(5, 1));
  EXPECT_EQ(counts(PhaseKind::kAllGather, 0), Pair(1, 5));
  EXPECT_EQ(counts(PhaseKind::kAllReduce, 0), Pair(3, 3));
  EXPECT_EQ(counts(PhaseKind::kReduce, 2), Pair(3, 3));
  EXPECT_EQ(counts(PhaseKind::kReduce, 0), Pair(3, 0));
  EXPECT_EQ(counts(PhaseKind::kBroadcast, 2), Pair(3, 3));
  EXPECT_EQ(counts(PhaseKind::kBroadcast, 0), Pair(0, 3));
  for (const uint32_t parts : {1u, 2u}) {
    plan.blocks = 5 * parts;
    EXPECT_EQ(counts(PhaseKind::kAllToAll, 0), Pair(5 * parts, 5 * parts));
    EXPECT_EQ(parts_of(plan), parts);
  }
  plan.blocks = 5;
  EXPECT_EQ(counts(PhaseKind::kAllToAllV, 0), Pair(5, 5));
  EXPECT_EQ(parts_of(plan), 1u);
  plan.blocks = 3;
  for (const PhaseKind kind : {PhaseKind::kGather, PhaseKind::kGatherV}) {
    EXPECT_EQ(counts(kind, 2), Pair(1, 5));
    EXPECT_EQ(counts(kind, 0), Pair(1, 0));
  }
  for (const PhaseKind kind : {PhaseKind::kScatter, PhaseKind::kScatterV}) {
    EXPECT_EQ(counts(kind, 2), Pair(5, 1));
    EXPECT_EQ(counts(kind, 0), Pair(0, 1));
  }
  EXPECT_EQ(counts(PhaseKind::kBarrier, 0), Pair(3, 3));
  EXPECT_EQ(counts(PhaseKind::kSend, 0), Pair(3, 0));
  EXPECT_EQ(counts(PhaseKind::kRecv, 1), Pair(0, 3));
}

}  // namespace
}  // namespace trestle
