// Plan as a value: equal plans hash alike on every host, every field counts, the text is readable.
#include <gtest/gtest.h>

#include <functional>

#include "plan/builder.h"

namespace trestle {
namespace {

Plan example() {
  PlanBuilder builder({.kind = PhaseKind::kAllReduce, .group_size = 3, .me = 1, .root = 0, .in_place = false}, 3);
  builder.send(2, input(0, 2), 0);
  builder.recv(0, scratch(0), 2);
  builder.reduce(output(2), {scratch(0), input(2), from(2)}, 2);
  builder.send(0, output(2), 2);
  return std::move(builder).finish();
}

TEST(PlanValue, HashIsTheSameForEver) {
  EXPECT_EQ(hash(example()), hash(example()));
  EXPECT_EQ(example(), example());
  EXPECT_EQ(hash(example()), 10167356364835062615u);
}

TEST(PlanValue, EveryFieldEntersTheHash) {
  const std::vector<std::function<void(Plan&)>> changes = {
      [](Plan& p) { p.kind = PhaseKind::kReduce; },
      [](Plan& p) { p.group_size = 4; },
      [](Plan& p) { p.me = 0; },
      [](Plan& p) { p.root = 1; },
      [](Plan& p) { p.in_place = true; },
      [](Plan& p) { p.blocks = 4; },
      [](Plan& p) { p.scratch = 2; },
      [](Plan& p) { p.turned = 1; },
      [](Plan& p) { p.steps.pop_back(); },
      [](Plan& p) { p.steps[0].kind = StepKind::kCopy; },
      [](Plan& p) { p.steps[0].peer = 0; },
      [](Plan& p) { p.steps[0].message = 1; },
      [](Plan& p) { p.steps[1].destination.space = Space::kOutput; },
      [](Plan& p) { p.steps[1].destination.first = 1; },
      [](Plan& p) { p.steps[1].destination.count = 2; },
      [](Plan& p) { p.steps[1].logical_first = 1; },
      [](Plan& p) { p.steps[1].blocks = 2; },
      [](Plan& p) { p.steps[1].first_source = 2; },
      [](Plan& p) { p.steps[1].sources = 2; },
      [](Plan& p) { p.steps[2].first_dependency = 1; },
      [](Plan& p) { p.steps[2].dependencies = 0; },
      [](Plan& p) { p.steps[1].after = 0; },
      [](Plan& p) { p.sources[0].peer = 0; },
      [](Plan& p) { p.sources[0].blocks.first = 1; },
      [](Plan& p) { p.sources[0].message = 1; },
      [](Plan& p) { p.dependencies[0].step = 0; },
      [](Plan& p) { p.dependencies[0].my_first = 1; },
      [](Plan& p) { p.dependencies[0].its_first = 1; },
      [](Plan& p) { p.dependencies[0].count = 2; },
  };
  const Plan original = example();
  for (size_t i = 0; i < changes.size(); ++i) {
    Plan changed = original;
    changes[i](changed);
    EXPECT_NE(hash(changed), hash(original)) << "change " << i;
    EXPECT_NE(changed, original) << "change " << i;
  }
}

TEST(PlanValue, TextHasOneLinePerStep) {
  EXPECT_EQ(to_string(example()),
            "all-reduce, rank 1 of 3, 3 blocks, 1 scratch blocks\n"
            "  0: send input[0..1] -> message 0 to 2; logical [0..1]\n"
            "  1: recv scratch[0] <- message 0 of 0; logical [2]\n"
            "  2: reduce output[2] <- scratch[0] + input[2] + message 0 of 2; logical [2]; after 1\n"
            "  3: send output[2] -> message 0 to 0; logical [2]; after 2\n");
}

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
