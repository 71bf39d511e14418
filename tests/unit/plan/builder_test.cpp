// The builder: message numbers, derived dependencies, aliasing in place.
#include <gtest/gtest.h>

#include <span>

#include "plan/builder.h"

namespace trestle {
namespace {

PlanRequest request(PhaseKind kind, int32_t size, int32_t me, bool in_place = false) {
  return {.kind = kind, .group_size = size, .me = me, .root = 0, .in_place = in_place};
}

std::vector<Dependency> dependencies(const Plan& plan, size_t step) {
  const Step& s = plan.steps[step];
  const auto all = std::span(plan.dependencies).subspan(s.first_dependency, s.dependencies);
  return {all.begin(), all.end()};
}

using Dependencies = std::vector<Dependency>;

TEST(PlanBuilder, NumbersMessagesPerPeerAndDirection) {
  PlanBuilder builder(request(PhaseKind::kAllReduce, 3, 0), 3);
  builder.send(1, input(0), 0);
  builder.send(2, input(1), 1);
  builder.send(1, input(2), 2);
  builder.recv(1, scratch(0), 0);
  builder.reduce(output(0), {from(1), input(0), from(2)}, 0);
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(plan.steps[0].message, 0u);
  EXPECT_EQ(plan.steps[1].message, 0u);
  EXPECT_EQ(plan.steps[2].message, 1u);
  EXPECT_EQ(plan.steps[3].message, 0u);
  const Step& reduce = plan.steps[4];
  ASSERT_EQ(reduce.sources, 3u);
  EXPECT_EQ(plan.sources[reduce.first_source], (Source{1, {}, 1}));
  EXPECT_EQ(plan.sources[reduce.first_source + 1], (Source{kLocal, input(0), 0}));
  EXPECT_EQ(plan.sources[reduce.first_source + 2], (Source{2, {}, 0}));
  EXPECT_EQ(plan.scratch, 1u);
}

TEST(PlanBuilder, TurnsAreNoDependenciesOfData) {
  PlanBuilder builder(request(PhaseKind::kAllToAll, 3, 0), 3);
  builder.send(1, input(1), 1);
  const uint32_t first = builder.last();
  builder.recv(2, output(2), 0);
  builder.send(2, input(2), 2);
  builder.in_turn_after(first);
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(plan.steps[0].after, kNoStep);
  EXPECT_EQ(plan.steps[1].after, kNoStep);
  EXPECT_EQ(plan.steps[2].after, first);
  EXPECT_EQ(dependencies(plan, 2), Dependencies{});
}

TEST(PlanBuilder, ReadAfterWriteWaitsForTheWriterOnly) {
  PlanBuilder builder(request(PhaseKind::kAllReduce, 2, 0), 4);
  builder.recv(1, scratch(0, 4), 0);
  builder.send(1, scratch(1, 2), 1);
  builder.send(1, input(0), 0);
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(dependencies(plan, 0), Dependencies{});
  EXPECT_EQ(dependencies(plan, 1), (Dependencies{{.step = 0, .my_first = 0, .its_first = 1, .count = 2}}));
  EXPECT_EQ(dependencies(plan, 2), Dependencies{});
}

TEST(PlanBuilder, WriteWaitsForReadersAndThoseImplyTheOlderWriter) {
  PlanBuilder builder(request(PhaseKind::kAllReduce, 2, 0), 2);
  builder.recv(1, scratch(0, 2), 0);       // 0
  builder.send(1, scratch(0), 0);          // 1 reads block 0
  builder.copy(output(0), scratch(0), 0);  // 2 reads block 0
  builder.recv(1, scratch(0, 2), 0);       // 3 writes both: block 0 after its readers, block 1 after its writer
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(dependencies(plan, 3), (Dependencies{{0, 1, 1, 1}, {1, 0, 0, 1}, {2, 0, 0, 1}}));
}

TEST(PlanBuilder, ReduceOntoItsOwnSourceDoesNotWaitForItself) {
  PlanBuilder builder(request(PhaseKind::kAllReduce, 2, 0), 2);
  builder.copy(scratch(0), input(0), 0);
  builder.reduce(scratch(0), {scratch(0), from(1)}, 0);
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(dependencies(plan, 1), (Dependencies{{0, 0, 0, 1}}));
}

TEST(PlanBuilder, TwoOverlappingRangesBecomeTwoRuns) {
  PlanBuilder builder(request(PhaseKind::kAllReduce, 2, 0), 4);
  builder.recv(1, scratch(0), 0);
  builder.recv(1, scratch(2, 2), 2);
  builder.send(1, scratch(0, 4), 0);
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(dependencies(plan, 2), (Dependencies{{0, 0, 0, 1}, {1, 2, 0, 2}}));
}

// For each kind: sends the input block and receives into the output block that is the same memory in place.
struct AliasCase {
  PhaseKind kind;
  uint32_t input_block;
  uint32_t output_block;
  uint32_t input_logical;
  int32_t me;
  bool aliased;
};

class PlanBuilderAlias : public ::testing::TestWithParam<AliasCase> {};

TEST_P(PlanBuilderAlias, OrdersAndDropsCopiesAsTheTableSays) {
  const AliasCase& c = GetParam();
  for (bool in_place : {false, true}) {
    PlanBuilder builder(request(c.kind, 4, c.me, in_place), 4);
    builder.send(c.me == 0 ? 1 : 0, input(c.input_block), c.input_logical);
    builder.copy(output(c.output_block), input(c.input_block), c.input_logical);
    builder.recv(c.me == 0 ? 1 : 0, output(c.output_block), 0);
    const Plan plan = std::move(builder).finish();
    const bool same = in_place && c.aliased;
    ASSERT_EQ(plan.steps.size(), same ? 2u : 3u);
    EXPECT_EQ(dependencies(plan, plan.steps.size() - 1), (Dependencies{{same ? 0u : 1u, 0, 0, 1}}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, PlanBuilderAlias,
    ::testing::Values(
        AliasCase{PhaseKind::kReduceScatter, 2, 0, 2, 2, true}, AliasCase{PhaseKind::kReduceScatter, 1, 0, 1, 2, false},
        AliasCase{PhaseKind::kAllGather, 0, 2, 2, 2, true}, AliasCase{PhaseKind::kAllGather, 0, 1, 2, 2, false},
        AliasCase{PhaseKind::kAllReduce, 3, 3, 3, 1, true}, AliasCase{PhaseKind::kAllReduce, 3, 2, 3, 1, false},
        AliasCase{PhaseKind::kReduce, 1, 1, 1, 0, true}, AliasCase{PhaseKind::kBroadcast, 1, 1, 1, 0, true},
        AliasCase{PhaseKind::kAllToAll, 3, 3, 3, 1, true}, AliasCase{PhaseKind::kAllToAll, 3, 1, 3, 1, false},
        AliasCase{PhaseKind::kGather, 0, 0, 0, 0, true}, AliasCase{PhaseKind::kScatter, 0, 0, 0, 0, true},
        AliasCase{PhaseKind::kScatterV, 2, 0, 2, 0, false}));

TEST(PlanBuilderDeath, NamesMisuse) {
  EXPECT_DEATH(
      {
        PlanBuilder builder(request(PhaseKind::kAllReduce, 2, 0), 1);
        builder.send(0, input(0), 0);
      },
      "outside the group or itself");
  EXPECT_DEATH(
      {
        PlanBuilder builder(request(PhaseKind::kAllReduce, 2, 0), 1);
        builder.recv(1, input(0), 0);
      },
      "writes the input");
  EXPECT_DEATH(
      {
        PlanBuilder builder(request(PhaseKind::kAllReduce, 2, 0), 1);
        builder.send(1, output(1), 0);
      },
      "outside the output");
}

}  // namespace
}  // namespace trestle
