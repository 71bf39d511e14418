// The table of policies: names, words behind them, plans within the rules, and the choice of auto.
#include <gtest/gtest.h>

#include <algorithm>

#include "gradient/policy/policies.h"
#include "gradient/policy/us_byte.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

std::string refusal(const char* text) {
  const Result<ChosenPolicy> chosen = parse_gradient_policy(text);
  return chosen.ok() ? "accepted" : chosen.error().message;
}

PlannedStep planned(const char* text, const GradientWorkload& workload, const GradientLink& link) {
  return plan_step(parse_gradient_policy(text).value(), workload, link).value();
}

TEST(Policies, AreNamedWithTheirArguments) {
  EXPECT_EQ(parse_gradient_policy("threshold").value().arguments.bytes, 25u << 20);
  EXPECT_EQ(parse_gradient_policy("threshold:64K").value().arguments.bytes, 64u << 10);
  EXPECT_EQ(parse_gradient_policy("nearby:7").value().arguments.count, 7u);
  EXPECT_EQ(parse_gradient_policy("dear:1M:lookahead").value().arguments.gather, GatherIssue::kOneAhead);
  EXPECT_EQ(parse_gradient_policy("dear:eager").value().arguments.bytes, 25u << 20);
  EXPECT_TRUE(parse_gradient_policy("dear:tuned").value().arguments.tuned);
  EXPECT_TRUE(parse_gradient_policy("split_optimal").value().arguments.shared);
  EXPECT_FALSE(parse_gradient_policy("split_optimal:free").value().arguments.shared);
  EXPECT_EQ(parse_gradient_policy("priority").value().arguments.bytes, 4'000'000u);
}

TEST(Policies, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(refusal("fastest").substr(0, 54), "'fastest' is not a policy; there are naive, wfbp, sync");
  EXPECT_EQ(refusal("wfbp:3"), "wfbp:3: \"3\" is one word too many; write wfbp");
  EXPECT_EQ(refusal("nearby:0"), "nearby:0: 0 is not from 1 to 1048576; write nearby[:N]");
  EXPECT_EQ(refusal("threshold:0"), "threshold:0: \"0\" is not at least one byte; write threshold[:BYTES]");
  EXPECT_EQ(refusal("dear:25M:late"),
            "dear:25M:late: \"late\" is neither eager nor lookahead; write dear[:BYTES|tuned][:eager|lookahead]");
  EXPECT_EQ(refusal("split_optimal:both"),
            "split_optimal:both: \"both\" is neither shared nor free; write split_optimal[:shared|free]");
  EXPECT_NE(refusal("priority:many"), "accepted");
  EXPECT_NE(refusal(""), "accepted");
}

TEST(Policies, KeepTheRulesOfPlans) {
  Rng rng(6);
  for (int round = 0; round < 300; ++round) {
    const GradientWorkload workload = random_workload(rng, 20);
    const GradientLink link = random_link(rng);
    const double compute_s = workload.forward_s() + workload.backward_s();
    for (const ChosenPolicy& chosen : allowed_policies(kLibertyNone)) {
      const Result<PlannedStep> step = plan_step(chosen, workload, link);
      ASSERT_TRUE(step.ok()) << chosen.text << ": " << step.error().message;
      const StepTime& time = step.value().time;
      EXPECT_GE(time.iteration_s, compute_s * (1 - 1e-12)) << chosen.text;
      EXPECT_NEAR(time.exposed_s, time.iteration_s - compute_s, 1e-9) << chosen.text;
      for (size_t m = 1; m < time.messages.size(); ++m) {
        EXPECT_GE(time.messages[m].start_s, time.messages[m - 1].end_s) << chosen.text << ": one message at a time";
      }
      EXPECT_EQ(step.value().batches, std::vector<uint32_t>{1});
      EXPECT_EQ(step.value().age, 0u);
    }
  }
}

TEST(Auto, TakesTheFastestPolicy) {
  const GradientWorkload workload = built_in_workload("resnet50@dear").value();
  const PlannedStep chosen = planned("auto", workload, ethernet_64());
  EXPECT_EQ(chosen.policy, "split_optimal:free");
  for (const ChosenPolicy& other : allowed_policies(kLibertyNone)) {
    EXPECT_LE(chosen.time.iteration_s, plan_step(other, workload, ethernet_64()).value().time.iteration_s)
        << other.text;
  }
}

// One bucket with the communication of two iterations: every second update is applied, of two batches.
TEST(Deft, UpdatesLessOftenInsteadOfWaiting) {
  const GradientWorkload workload = workload_from({4}, {1}, {1});
  const PlannedStep step = planned("deft", workload, halved_link({0, 1}));
  EXPECT_NEAR(step.time.iteration_s, 2, 1e-9) << "compute never waits";
  EXPECT_EQ(step.time.exposed_s, 0);
  EXPECT_LT(step.updates_per_iteration, 1);
  EXPECT_GE(step.age, 1u);
  EXPECT_GT(*std::max_element(step.batches.begin(), step.batches.end()), 1u);
}

TEST(Deft, UpdatesMoreOftenOverTwoLinks) {
  const GradientWorkload workload = workload_from({4, 4, 4, 4}, {1, 1, 1, 1}, {1, 1, 1, 1});
  const GradientLink link = halved_link({0, 0.75});
  const ChosenPolicy deft = parse_gradient_policy("deft:4").value();
  const auto planned_on = [&](std::vector<double> ratios) {
    return plan_step(deft, workload, link, kLibertyStale, ratios).value();
  };
  const PlannedStep one = planned_on({}), two = planned_on({1.65});
  EXPECT_EQ(two.plan.delayed.links, (std::vector<DeftLink>{{1000}, {1650}}));
  EXPECT_EQ(two.plan.delayed.buckets, one.plan.delayed.buckets);
  EXPECT_GT(two.updates_per_iteration, one.updates_per_iteration);
  for (const std::vector<double>& wrong : {std::vector<double>{0.5}, {2, 0.9}, {1001}, {-1}}) {
    const Result<PlannedStep> refused = plan_step(deft, workload, link, kLibertyStale, wrong);
    ASSERT_FALSE(refused.ok()) << wrong.back();
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  }
}

TEST(Deft, IsTriedOnlyWhereUpdatesMayBeStale) {
  const auto has_deft = [](uint32_t liberties) {
    const auto allowed = allowed_policies(liberties);
    return std::any_of(allowed.begin(), allowed.end(), [](const auto& each) { return each.policy->name == "deft"; });
  };
  EXPECT_FALSE(has_deft(kLibertyNone));
  EXPECT_TRUE(has_deft(kLibertyStale));
}

TEST(Auto, TakesTheFirstOfEqualPolicies) {
  const GradientWorkload workload = workload_from({4, 4}, {1, 1}, {1, 1});
  EXPECT_EQ(planned("auto", workload, {}).policy, "naive");
}

TEST(Priority, SendsTheLowestReadyTensorFirst) {
  const GradientWorkload workload = workload_from({1, 4, 4}, {1, 1, 1}, {2, 1, 1});
  const PlannedStep step = planned("priority:2", workload, halved_link({0, 1}));
  // Tensor 2 is ready at 1, tensor 1 at 2, tensor 0 at 4. A part takes two, and is not interrupted.
  std::vector<uint32_t> order;
  for (const MessageTime& message : step.time.messages) order.push_back(message.tensors.first);
  EXPECT_EQ(order, (std::vector<uint32_t>{2, 1, 0, 1, 2}));
  EXPECT_EQ(step.time.iteration_s, 11);
}

TEST(Priority, AddsTheNegotiationToEachPart) {
  const GradientWorkload workload = workload_from({4}, {1}, {1});
  EXPECT_EQ(planned("priority:2:500ms", workload, halved_link({1, 1})).time.iteration_s, 1 + 2 * (1 + 2 + 0.5) + 1);
  EXPECT_NE(refusal("priority:2:soon"), "accepted");
  EXPECT_NE(refusal("priority:2:-1s"), "accepted");
  EXPECT_EQ(refusal("priority:2:1s:3"),
            "priority:2:1s:3: \"3\" is one word too many; write priority[:BYTES[:NEGOTIATION]]");
}

TEST(Priority, RefusesTooManyParts) {
  const GradientWorkload workload = workload_from({uint64_t{1} << 40}, {1}, {1});
  const Result<PlannedStep> step = plan_step(parse_gradient_policy("priority:1").value(), workload, {});
  EXPECT_EQ(step.error().message, "parts of 1 bytes are 1099511627776; at most 1048576 are possible");
  EXPECT_FALSE(plan_step(parse_gradient_policy("us_byte:1").value(), workload, {}).ok());
}

TEST(UsByte, MergesPartsWhereStartupsAreLong) {
  const GradientWorkload workload = built_in_workload("resnet50@dear").value();
  const PlannedStep greedy = planned("us_byte", workload, ethernet_64());
  const PlannedStep parts = planned("priority", workload, ethernet_64());
  EXPECT_LT(greedy.time.iteration_s, parts.time.iteration_s);
  EXPECT_LT(greedy.time.messages.size(), parts.time.messages.size());
}

TEST(Plans, AgainstTheirRulesAreRefused) {
  const auto fault = [](std::vector<TensorGroup> groups) {
    GradientPlan plan;
    plan.groups = std::move(groups);
    const Status checked = check_plan(plan, 3);
    return checked.ok() ? "none" : checked.error().message;
  };
  EXPECT_EQ(fault({{0, 1}, {2, 2}}), "none");
  EXPECT_EQ(fault({{0, 1}}), "groups: tensor 2 is in no group");
  EXPECT_EQ(fault({{0, 1}, {1, 2}}), "groups: a group goes from tensor 1 to 2 where tensor 2 comes next of 3");
  EXPECT_EQ(fault({{0, 3}}), "groups: a group goes from tensor 0 to 3 where tensor 0 comes next of 3");
  EXPECT_FALSE(plan_step(parse_gradient_policy("wfbp").value(), {}, {}).ok()) << "no tensors";
  GradientPlan delayed;
  delayed.shape = StepShape::kDelayed;
  delayed.groups = {{0, 2}};
  EXPECT_EQ(check_plan(delayed, 3).error().message, "0 buckets for 1 groups");
  delayed.delayed = {{{1, 1, 1}}, {{}}};
  EXPECT_TRUE(check_plan(delayed, 3).ok());
  delayed.delayed.buckets[0].forward_us = 0;
  EXPECT_FALSE(check_plan(delayed, 3).ok());
}

}  // namespace
}  // namespace trestle
