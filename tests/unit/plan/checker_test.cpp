// The checker: right plans pass, and each kind of injected fault is found and named.
#include <gtest/gtest.h>

#include <string>

#include "plan/builder.h"
#include "plan/checker.h"

namespace trestle {
namespace checker_test {
namespace {

PlanRequest request(PhaseKind kind, int32_t size, int32_t me, bool in_place = false) {
  return {.kind = kind, .group_size = size, .me = me, .root = 0, .in_place = in_place};
}

// Two ranks swap their inputs and add; in place through one scratch block.
std::vector<Plan> exchange(bool in_place) {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1}) {
    PlanBuilder builder(request(PhaseKind::kAllReduce, 2, me, in_place), 1);
    builder.send(1 - me, input(0), 0);
    builder.recv(1 - me, scratch(0), 0);
    builder.reduce(output(0), {input(0), scratch(0)}, 0);
    plans.push_back(std::move(builder).finish());
  }
  return plans;
}

// Three ranks pass a sum along and back through one block.
std::vector<Plan> chain() {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1, 2}) {
    PlanBuilder builder(request(PhaseKind::kAllReduce, 3, me), 1);
    if (me == 0) builder.send(1, input(0), 0);
    if (me > 0) builder.reduce(output(0), {from(me - 1), input(0)}, 0);
    if (me == 1) builder.send(2, output(0), 0);
    if (me == 2) builder.send(1, output(0), 0);
    if (me < 2) builder.recv(me + 1, output(0), 0);
    if (me == 1) builder.send(0, output(0), 0);
    plans.push_back(std::move(builder).finish());
  }
  return plans;
}

void expect_fault(const std::vector<Plan>& plans, const std::string& part) {
  const Status status = check_plans(plans);
  ASSERT_FALSE(status.ok()) << "expected: " << part;
  EXPECT_EQ(status.error().code, Code::kInternalError);
  EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
}

void drop_dependencies(Plan& plan, size_t step) {
  plan.steps[step].dependencies = 0;
}

TEST(PlanChecker, AcceptsRightPlans) {
  for (bool in_place : {false, true}) {
    const Status status = check_plans(exchange(in_place));
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
  const Status status = check_plans(chain());
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(PlanChecker, AcceptsRanksThatDifferInPlace) {
  const std::vector<Plan> mixed{exchange(true)[0], exchange(false)[1]};
  EXPECT_TRUE(check_plans(mixed).ok());
}

TEST(PlanChecker, FindsATurnAfterNoEarlierMessageInTheSameDirection) {
  for (const uint32_t after : {0u, 1u, 2u, 99u}) {
    auto plans = exchange(false);
    plans[1].steps[1].after = after;  // a receive after a send, itself, a reduction and nothing
    expect_fault(plans, "rank 1, step 1 (recv from 0) takes its turn after step " + std::to_string(after) +
                            ", which is no earlier message in the same direction");
  }
}

TEST(PlanChecker, FindsTurnsThatWaitForEachOther) {
  // Each rank receives last what the other one sends first.
  std::vector<Plan> plans;
  for (int32_t me : {0, 1, 2}) {
    PlanBuilder builder(request(PhaseKind::kAllToAll, 3, me), 3);
    const auto mine = static_cast<uint32_t>(me);
    const int32_t next = (me + 1) % 3;
    const int32_t other = (me + 2) % 3;
    builder.send(next, input(static_cast<uint32_t>(next)), static_cast<uint32_t>(next));
    builder.send(other, input(static_cast<uint32_t>(other)), static_cast<uint32_t>(other));
    builder.in_turn_after(builder.last() - 1);
    builder.recv(next, output(static_cast<uint32_t>(next)), mine);
    builder.recv(other, output(static_cast<uint32_t>(other)), mine);
    builder.in_turn_after(builder.last() - 1);
    builder.copy(output(mine), input(mine), mine);
    plans.push_back(std::move(builder).finish());
  }
  expect_fault(plans, "deadlock");
  for (Plan& plan : plans) plan.steps[3].after = kNoStep;
  const Status status = check_plans(plans);
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(PlanChecker, FindsMessagesOfARowThatWaitForEachOther) {
  // Rank 1 takes rank 0's first message where the one that it sends has left, and rank 0 takes that one where its
  // second message has left.
  std::vector<Plan> plans;
  PlanBuilder first(request(PhaseKind::kBarrier, 2, 0), 1);
  first.copy(scratch(0), input(0), 0);
  first.send(1, input(0), 0);
  first.send(1, scratch(0), 0);
  first.recv(1, scratch(0), 0);
  first.reduce(output(0), {scratch(0), input(0)}, 0);
  plans.push_back(std::move(first).finish());
  PlanBuilder second(request(PhaseKind::kBarrier, 2, 1), 1);
  second.copy(scratch(0), input(0), 0);
  second.send(0, scratch(0), 0);
  second.recv(0, scratch(0), 0);
  second.recv(0, scratch(1), 0);
  second.reduce(output(0), {scratch(0), scratch(1), input(0)}, 0);
  plans.push_back(std::move(second).finish());
  expect_fault(plans, "deadlock: ");
  // Other places, and the same messages pass.
  PlanBuilder apart(request(PhaseKind::kBarrier, 2, 1), 1);
  apart.send(0, input(0), 0);
  apart.recv(0, scratch(0), 0);
  apart.recv(0, scratch(1), 0);
  apart.reduce(output(0), {scratch(0), scratch(1), input(0)}, 0);
  plans[1] = std::move(apart).finish();
  const Status status = check_plans(plans);
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(PlanChecker, FindsAMissingReadAfterWrite) {
  auto plans = exchange(false);
  drop_dependencies(plans[1], 2);
  expect_fault(plans, "rank 1, step 2 (reduce) reads scratch block 0 without waiting for rank 1, step 1 (recv from 0)");
}

TEST(PlanChecker, FindsAMissingWriteAfterReadOfASend) {
  auto plans = exchange(true);
  Plan& plan = plans[0];
  ASSERT_EQ(plan.steps[2].dependencies, 2u);
  // Keeps the read-after-write edge on the receive and removes the write-after-read edge on the send.
  Step& reduce = plan.steps[2];
  ASSERT_EQ(plan.dependencies[reduce.first_dependency].step, 0u);
  ++reduce.first_dependency;
  --reduce.dependencies;
  expect_fault(plans,
               "rank 0, step 2 (reduce) overwrites output block 0 without waiting for rank 0, step 0 (send to 1)");
}

TEST(PlanChecker, FindsAMissingWriteAfterWrite) {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1}) {
    PlanBuilder builder(request(PhaseKind::kBroadcast, 2, me), 1);
    if (me == 0) {
      builder.send(1, input(0), 0);
      builder.send(1, input(0), 0);
      builder.copy(output(0), input(0), 0);
    } else {
      builder.recv(0, output(0), 0);
      builder.recv(0, output(0), 0);
    }
    plans.push_back(std::move(builder).finish());
  }
  ASSERT_TRUE(check_plans(plans).ok());
  drop_dependencies(plans[1], 1);
  expect_fault(plans, "rank 1, step 1 (recv from 0) overwrites output block 0 without waiting for rank 1, step 0");
}

TEST(PlanChecker, AcceptsAnOrderThatFollowsThroughOtherSteps) {
  auto plans = exchange(false);
  PlanBuilder builder(request(PhaseKind::kAllReduce, 2, 0), 1);
  builder.recv(1, scratch(0), 0);
  builder.send(1, input(0), 0);
  builder.reduce(output(0), {input(0), scratch(0)}, 0);
  Plan plan = std::move(builder).finish();
  // The reduce waits for the send and the send for the receive, although these share no block.
  ASSERT_EQ(plan.dependencies, (std::vector<Dependency>{{0, 0, 0, 1}}));
  plan.dependencies.push_back({1, 0, 0, 1});
  plan.steps[1].dependencies = 1;
  plan.steps[2].first_dependency = 1;
  plan.steps[2].dependencies = 1;
  plans[0] = plan;
  const Status status = check_plans(plans);
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(PlanChecker, FindsAnEdgeToTheWrongStep) {
  auto plans = chain();
  Plan& plan = plans[1];
  // Step 2 receives into the block that step 1 sends. It is not enough to wait for step 0, which wrote the block
  // before.
  const uint32_t at = plan.steps[2].first_dependency;
  ASSERT_EQ(plan.dependencies[at].step, 1u);
  plan.dependencies[at].step = 0;
  expect_fault(plans, "rank 1, step 2 (recv from 2) overwrites output block 0 without waiting for rank 1, step 1");
}

TEST(PlanChecker, FindsADoubleContribution) {
  auto plans = exchange(false);
  // Adds the scratch block twice and the rank's own input not at all.
  Plan& plan = plans[0];
  plan.sources[plan.steps[2].first_source].blocks = scratch(0);
  expect_fault(plans, "rank 0, step 2 (reduce) adds the contribution of rank 1 to logical block 0 twice");
}

TEST(PlanChecker, FindsAMissingContribution) {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1, 2}) {
    PlanBuilder builder(request(PhaseKind::kReduce, 3, me), 1);
    if (me == 0) builder.reduce(output(0), {input(0), from(2)}, 0);
    if (me == 2) builder.send(0, input(0), 0);
    plans.push_back(std::move(builder).finish());
  }
  expect_fault(plans, "rank 0, output block 0 lacks the contribution of rank 1");
}

TEST(PlanChecker, FindsTheContributionOfAWrongRank) {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1}) {
    PlanBuilder builder(request(PhaseKind::kAllGather, 2, me), 2);
    builder.send(1 - me, input(0), static_cast<uint32_t>(me));
    builder.copy(output(static_cast<uint32_t>(me)), input(0), static_cast<uint32_t>(me));
    builder.recv(1 - me, output(static_cast<uint32_t>(1 - me)), static_cast<uint32_t>(1 - me));
    plans.push_back(std::move(builder).finish());
  }
  ASSERT_TRUE(check_plans(plans).ok());
  std::swap(plans[0].steps[1].destination.first, plans[0].steps[2].destination.first);
  expect_fault(plans, "rank 0, output block 0 holds logical block 1 in the end, not 0");
}

TEST(PlanChecker, FindsSwappedMessages) {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1}) {
    PlanBuilder builder(request(PhaseKind::kBroadcast, 2, me), 2);
    for (uint32_t block : {0u, 1u}) {
      if (me == 0) builder.send(1, input(block), block);
      if (me == 0) builder.copy(output(block), input(block), block);
      if (me == 1) builder.recv(0, output(1 - block), 1 - block);
    }
    plans.push_back(std::move(builder).finish());
  }
  expect_fault(plans,
               "rank 1, step 0 (recv from 0) expects logical block 1 in message 0 of rank 0, but rank 0, step 0 "
               "(send to 1) sends logical block 0");
}

TEST(PlanChecker, FindsASendThatCarriesAnotherBlockThanItSays) {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1}) {
    PlanBuilder builder(request(PhaseKind::kBroadcast, 2, me), 2);
    if (me == 0) builder.send(1, input(1), 0);
    if (me == 1) builder.recv(0, output(0), 0);
    plans.push_back(std::move(builder).finish());
  }
  expect_fault(plans,
               "rank 0, step 0 (send to 1) reads input block 1 as logical block 0, but it holds logical block 1");
}

TEST(PlanChecker, FindsUnmatchedMessages) {
  auto plans = chain();
  plans[1].steps.pop_back();
  expect_fault(plans, "rank 0, step 1 (recv from 1) waits for message 0 of rank 1, which is never sent");
  plans = chain();
  plans[0].steps.pop_back();
  expect_fault(plans, "rank 1, step 3 (send to 0) sends message 0, which rank 0 never receives");
  plans = chain();
  plans[0].steps[0].message = 1;
  expect_fault(plans, "rank 0, step 0 (send to 1) numbers a message with rank 1 as 1; in plan order it is number 0");
}

TEST(PlanChecker, FindsAWriteToTheInput) {
  for (bool in_place : {false, true}) {
    auto plans = exchange(in_place);
    plans[1].steps[2].destination.space = Space::kInput;
    expect_fault(plans, "rank 1, step 2 (reduce) writes input block 0");
  }
}

TEST(PlanChecker, FindsAReadOfUnsetScratch) {
  auto plans = exchange(false);
  plans[0].scratch = 2;
  plans[0].sources[plans[0].steps[2].first_source + 1].blocks = scratch(1);
  expect_fault(plans, "rank 0, step 2 (reduce) reads scratch block 1, which nothing has written");
}

TEST(PlanChecker, FindsAnOutputThatNobodyWrote) {
  auto plans = exchange(false);
  plans[0].scratch = 2;
  plans[0].steps[2].destination = scratch(1);
  expect_fault(plans, "rank 0, output block 0: no step has written it in the end");
}

// Plans that signal ranks at these distances, one round after the other.
std::vector<Plan> signals(PhaseKind kind, int32_t ranks, const std::vector<int32_t>& distances) {
  std::vector<Plan> plans;
  for (int32_t me = 0; me < ranks; ++me) {
    PlanBuilder builder(request(kind, ranks, me), 1);
    BlockRange heard = input(0);
    for (uint32_t round = 0; round < distances.size(); ++round) {
      const BlockRange next = round + 1 == distances.size() ? output(0) : scratch(round);
      builder.send((me + distances[round]) % ranks, heard, 0);
      builder.reduce(next, {heard, from((me + ranks - distances[round]) % ranks)}, 0);
      heard = next;
    }
    plans.push_back(std::move(builder).finish());
  }
  return plans;
}

TEST(PlanChecker, ABarrierMayHearTwiceButMustHearOfAll) {
  EXPECT_TRUE(check_plans(signals(PhaseKind::kBarrier, 3, {1, 2})).ok());
  expect_fault(signals(PhaseKind::kAllReduce, 3, {1, 2}), "adds the contribution of rank 2 to logical block 0 twice");
  expect_fault(signals(PhaseKind::kBarrier, 4, {1, 1}),
               "rank 0, output block 0 lacks the contribution of rank 1 in the end");
}

TEST(PlanChecker, FindsADeadlockOfMessages) {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1}) {
    PlanBuilder builder(request(PhaseKind::kAllReduce, 2, me), 1);
    builder.recv(1 - me, scratch(0), 0);
    builder.send(1 - me, scratch(0), 0);
    plans.push_back(std::move(builder).finish());
  }
  expect_fault(
      plans,
      "deadlock: rank 0, step 0 (recv from 1) of logical block 0 waits forever for rank 1, step 1 (send to 0), "
      "which waits for rank 1, step 0 (recv from 0)");
}

TEST(PlanChecker, FindsADeadlockThatOnlyBufferingWouldHide) {
  // Both overwrite their sent data in place, in the step that receives the peer's message.
  std::vector<Plan> plans;
  for (int32_t me : {0, 1}) {
    PlanBuilder builder(request(PhaseKind::kAllReduce, 2, me, true), 1);
    builder.send(1 - me, input(0), 0);
    builder.reduce(output(0), {input(0), from(1 - me)}, 0);
    plans.push_back(std::move(builder).finish());
  }
  expect_fault(plans,
               "deadlock: rank 0, step 1 (reduce) of logical block 0 waits forever for rank 0, step 0 (send to 1)");
}

// An all-to-all of two ranks in halves. If `crossed`, they send one half for the other.
std::vector<Plan> halves(bool crossed) {
  std::vector<Plan> plans;
  for (uint32_t me : {0, 1}) {
    const uint32_t peer = 1 - me;
    PlanBuilder builder(request(PhaseKind::kAllToAll, 2, static_cast<int32_t>(me)), 4);
    for (uint32_t half : {0u, 1u}) {
      const uint32_t from = crossed ? 1 - half : half;
      builder.send(static_cast<int32_t>(peer), input(2 * peer + from), 2 * peer + half);
    }
    for (uint32_t half : {0u, 1u}) builder.recv(static_cast<int32_t>(peer), output(2 * peer + half), 2 * me + half);
    builder.copy(output(2 * me, 2), input(2 * me, 2), 2 * me);
    plans.push_back(std::move(builder).finish());
  }
  return plans;
}

TEST(PlanChecker, KnowsThePartsOfAnAllToAll) {
  const Status status = check_plans(halves(false));
  EXPECT_TRUE(status.ok()) << status.error().message;
  // Halves need not be equally long.
  expect_fault(halves(true), "reads input block 1 as logical block 0, but it holds logical block 1 of this all-to-all");
  std::vector<Plan> plans = halves(false);
  for (Plan& plan : plans) plan.blocks = 3;
  expect_fault(plans, "the plan of rank 0 has 3 blocks; this phase has equally many for each rank");
  // A pair has one message each way where only it knows the lengths.
  plans = halves(false);
  for (Plan& plan : plans) plan.kind = PhaseKind::kAllToAllV;
  expect_fault(plans, "the plan of rank 0 has 4 blocks; this phase has one per rank");
}

TEST(PlanChecker, FindsBrokenStructure) {
  auto plans = exchange(false);
  plans[1].me = 0;
  expect_fault(plans, "the plan of rank 1 says it is rank 0");
  plans = exchange(false);
  plans[1].blocks = 2;
  expect_fault(plans, "the plan of rank 1 has 2 blocks, rank 0's 1");
  plans = exchange(false);
  plans[0].steps[0].peer = 2;
  expect_fault(plans, "rank 0, step 0 (send to 2) names peer 2 of a group of 2");
  plans = exchange(false);
  plans[0].steps[1].destination.first = 1;
  expect_fault(plans, "rank 0, step 1 (recv from 1) names scratch block 1, but there are 1");
  plans = exchange(false);
  plans[0].dependencies[0].step = 2;
  expect_fault(plans, "rank 0, step 2 (reduce) depends on step 2, which does not come before it");
  plans = exchange(false);
  plans[0].steps[0].logical_first = 1;
  expect_fault(plans, "rank 0, step 0 (send to 1) moves 1 logical blocks from 1 on, but the phase has 1");
  plans = exchange(false);
  plans[0].sources.clear();
  expect_fault(plans, "rank 0, step 0 (send to 1) has sources outside the plan's list");
  expect_fault({}, "the group has no ranks");
}

TEST(PlanChecker, ChecksASendWithItsRecv) {
  PlanBuilder sender(request(PhaseKind::kSend, 2, 0), 1);
  sender.send(1, input(0), 0);
  PlanBuilder receiver(request(PhaseKind::kRecv, 2, 1), 1);
  receiver.recv(0, output(0), 0);
  const std::vector<Plan> plans{std::move(sender).finish(), std::move(receiver).finish()};
  EXPECT_TRUE(check_plans(plans).ok());
}

// Two ranks number the blocks of an all-reduce so that each gives away block 0 and keeps block 1.
std::vector<Plan> turned_exchange(bool in_place) {
  std::vector<Plan> plans;
  for (int32_t me : {0, 1}) {
    PlanBuilder builder(request(PhaseKind::kAllReduce, 2, me, in_place), 2, me == 0 ? 1 : 0);
    builder.send(1 - me, input(0), 0);
    builder.reduce(output(1), {input(1), from(1 - me)}, 1);
    builder.send(1 - me, output(1), 1);
    builder.recv(1 - me, output(0), 0);
    plans.push_back(std::move(builder).finish());
  }
  return plans;
}

TEST(PlanChecker, KnowsBlocksByTheirTurnedNames) {
  for (bool in_place : {false, true}) {
    const Status status = check_plans(turned_exchange(in_place));
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
  std::vector<Plan> same = turned_exchange(false);
  same[1].turned = 1;
  expect_fault(same, "expects logical block 1 in message 0 of rank 0");
  std::vector<Plan> outside = turned_exchange(false);
  outside[0].turned = 2;
  expect_fault(outside, "calls block i block i ^ 2 of 2");
}

}  // namespace
}  // namespace checker_test
}  // namespace trestle
