// AR-Topk as a split primitive: its halves against the paper's whole exchange, the largest ratio that hides against all
// others, and its place among the policies.
#include "gradient/policy/topk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gradient/policy/policies.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

constexpr SparseCollective kAll[] = {SparseCollective::kRing, SparseCollective::kTree, SparseCollective::kAllGather};

NetworkModel random_network(Rng& rng) {
  NetworkModel network;
  network.workers = static_cast<uint32_t>(1 + rng.below(100));
  network.startup_s = rng.below(4) == 0 ? 0 : 0.02 * rng.uniform();
  network.per_byte_s = rng.below(8) == 0 ? 0 : 1e-7 * rng.uniform();
  return network;
}

double time_of(const MessageCost& cost, double bytes) {
  return cost.startup_s + cost.per_byte_s * bytes;
}

StepPlanRequest request_on(const GradientWorkload& workload, const GradientLink& link,
                           const std::optional<NetworkModel>& network, uint32_t liberties = kLibertyCompress) {
  return {workload, link, {}, liberties, {}, {}, network};
}

PlannedStep planned(const char* text, const StepPlanRequest& request) {
  return plan_step(parse_gradient_policy(text).value(), request).value();
}

TEST(TopKPolicy, HalvesTakeTogetherWhatTheExchangeTakes) {
  Rng rng(1);
  for (int round = 0; round < 2000; ++round) {
    const NetworkModel network = random_network(rng);
    const double ratio = rng.uniform();
    const double bytes = 1e8 * rng.uniform();
    const SparseCosts whole = sparse_costs({bytes, ratio, network.workers, network.startup_s, network.per_byte_s});
    for (const SparseCollective collective : kAll) {
      const SparseHalves halves = sparse_halves(network, collective, ratio);
      const double both = time_of(halves.backward, bytes) + time_of(halves.forward, bytes);
      EXPECT_NEAR(both, whole.of(collective), 1e-12 * (1 + both)) << to_string(collective);
    }
    EXPECT_NEAR(whole.of(sparse_collective(network, bytes, ratio)), whole.of(cheapest(whole)), 1e-9 * whole.ring_s);
  }
}

// 64 workers on 10 Gb/s Ethernet, compute times of DeAR's table II, in milliseconds.
TEST(TopKPolicy, TakesThePublishedTimes) {
  const NetworkModel network{26e-6, 0.8e-9, 0, 64};
  const GradientLink link = ethernet_64();
  const auto step_ms = [&](const char* workload, const char* policy) {
    const GradientWorkload work = built_in_workload(workload).value();
    return 1e3 * planned(policy, request_on(work, link, network)).time.iteration_s;
  };
  EXPECT_NEAR(step_ms("bert_large@dear", "topk:0.1"), 980, 1);
  EXPECT_NEAR(step_ms("bert_large@dear", "topk:0.033"), 495, 1);
  EXPECT_NEAR(step_ms("bert_large@dear", "topk:0.011"), 461, 1);
  EXPECT_NEAR(step_ms("bert_base@dear", "topk:0.033"), 319, 1);
}

bool hides(const GradientWorkload& workload, const NetworkModel& network, double ratio) {
  const auto bytes = static_cast<double>(workload.bytes());
  const SparseHalves halves = sparse_halves(network, sparse_collective(network, bytes, ratio), ratio);
  return time_of(halves.backward, bytes) <= workload.backward_s() &&
         time_of(halves.forward, bytes) <= workload.forward_s();
}

// Against a fine grid of ratios from one element to all.
TEST(TopKPolicy, HiddenIsTheLargestRatioThatHides) {
  Rng rng(2);
  int found = 0;
  int inside = 0;  // neither everything nor nothing
  for (int round = 0; round < 600; ++round) {
    const GradientWorkload workload = random_workload(rng, 10);
    const NetworkModel network = random_network(rng);
    const auto bytes = static_cast<double>(workload.bytes());
    if (bytes == 0 || network.workers == 1) {
      EXPECT_EQ(hidden_ratio(workload, network), 1);
      continue;
    }
    double largest = 0;
    constexpr int kGrid = 2000;
    for (int i = 0; i <= kGrid; ++i) {
      const double ratio = std::pow(4 / bytes, 1 - static_cast<double>(i) / kGrid);
      if (ratio <= 1 && hides(workload, network, ratio)) largest = ratio;
    }
    const std::optional<double> hidden = hidden_ratio(workload, network);
    if (!hidden) {
      EXPECT_EQ(largest, 0) << "round " << round;
      continue;
    }
    ++found;
    inside += *hidden < 1 ? 1 : 0;
    EXPECT_TRUE(hides(workload, network, *hidden)) << "round " << round;
    EXPECT_GE(*hidden, largest * (1 - 1e-9)) << "round " << round;
    EXPECT_LE(*hidden, 1);
    EXPECT_GE(*hidden, 4 / bytes * (1 - 1e-9));
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(inside, 40);
}

TEST(TopKPolicy, SaysWhatTravels) {
  const GradientWorkload workload = workload_from({4000, 4000}, {1, 1}, {1, 1});
  const NetworkModel network{1e-3, 1e-3, 0, 8};
  const PlannedStep step = planned("topk:0.25", request_on(workload, ethernet_64(), network));
  ASSERT_TRUE(step.compressed.has_value());
  EXPECT_EQ(step.compressed->ratio, 0.25);
  EXPECT_EQ(step.compressed->collective, "ring");
  EXPECT_NEAR(step.compressed->selection_s, 8000 * 0.03e-9, 1e-18);
  EXPECT_NEAR(step.time.exposed_s, step.time.iteration_s - 4, 1e-12);
  // An all-gather has no second half.
  const PlannedStep gathered = planned("topk:0.0005", request_on(workload, ethernet_64(), {{1, 1e-3, 0, 8}}));
  EXPECT_EQ(gathered.compressed->collective, "all-gather");
  for (const MessageTime& message : gathered.time.messages) EXPECT_EQ(message.kind, MessageKind::kReduceScatter);
}

TEST(TopKPolicy, RefusesWhatItCannotPlan) {
  const auto refusal = [](const char* text) {
    const Result<ChosenPolicy> chosen = parse_gradient_policy(text);
    return chosen.ok() ? "accepted" : chosen.error().message;
  };
  EXPECT_EQ(refusal("topk:0"),
            "topk:0: \"0\" is neither hidden nor a ratio above 0 and at most 1; write topk[:RATIO|hidden]");
  for (const char* wrong : {"topk:1.01", "topk:-0.1", "topk:nan", "topk:0.1x", "topk:some", "topk:0.1:hidden"})
    EXPECT_NE(refusal(wrong), "accepted") << wrong;
  EXPECT_EQ(parse_gradient_policy("topk").value().arguments.ratio, 0);
  EXPECT_EQ(parse_gradient_policy("topk:1").value().arguments.ratio, 1);
  const GradientWorkload workload = workload_from({4000}, {1e-6}, {1e-6});
  const ChosenPolicy hidden = parse_gradient_policy("topk:hidden").value();
  const Result<PlannedStep> alone = plan_step(hidden, request_on(workload, {}, std::nullopt));
  ASSERT_FALSE(alone.ok());
  EXPECT_NE(alone.error().message.find("needs the number of workers"), std::string::npos);
  const Result<PlannedStep> startups = plan_step(hidden, request_on(workload, {}, {{1, 1e-9, 0, 4}}));
  ASSERT_FALSE(startups.ok());
  EXPECT_NE(startups.error().message.find("no ratio's exchange is hidden"), std::string::npos);
}

TEST(TopKPolicy, IsTriedOnlyWhereCompressionIsAllowed) {
  const auto has_topk = [](uint32_t liberties) {
    const auto allowed = allowed_policies(liberties);
    return std::any_of(allowed.begin(), allowed.end(), [](const auto& each) { return each.policy->name == "topk"; });
  };
  EXPECT_FALSE(has_topk(kLibertyNone));
  EXPECT_FALSE(has_topk(kLibertyStale));
  EXPECT_TRUE(has_topk(kLibertyCompress));
  const GradientWorkload workload = built_in_workload("bert_large@dear").value();
  const NetworkModel network{26e-6, 0.8e-9, 0, 64};
  const GradientLink link = ethernet_64();
  EXPECT_EQ(planned("auto", request_on(workload, link, network)).policy, "topk:hidden");
  EXPECT_EQ(planned("auto", request_on(workload, link, network, kLibertyNone)).policy, "split_optimal:free");
  // Without a network it is no choice.
  EXPECT_EQ(planned("auto", request_on(workload, link, std::nullopt)).policy, "split_optimal:free");
}

TEST(TopKPolicy, KnowsARingByItsAllReduce) {
  const NetworkModel network{26e-6, 0.8e-9, 0, 64};
  const NetworkModel again = as_ring(all_reduce_cost(network, AllReduceAlgorithm::kRing), 64);
  EXPECT_NEAR(again.startup_s, network.startup_s, 1e-18);
  EXPECT_NEAR(again.per_byte_s, network.per_byte_s, 1e-22);
  EXPECT_EQ(again.workers, 64u);
  EXPECT_EQ(as_ring({1, 1}, 1).startup_s, 0);
}

}  // namespace
}  // namespace trestle
