// Verdicts on pairs of dimensions, and the advice for known systems.
#include "study/advice.h"

#include <gtest/gtest.h>

#include "study/paper_systems.h"
#include "unit/sched/systems.h"

namespace trestle {
namespace {

Topology two(int32_t inner, uint64_t inner_gbps, int32_t outer, uint64_t outer_gbps) {
  Topology topology;
  topology.dimensions = {paper_dimension(inner, DimensionKind::kSwitch, inner_gbps, 700),
                         paper_dimension(outer, DimensionKind::kSwitch, outer_gbps, 1700)};
  return topology;
}

TEST(Advice, AllPairsOfThePapersSystemsAreOverProvisioned) {
  for (const PaperSystem& system : paper_systems()) {
    const Topology topology = to_topology(system);
    const std::vector<PairAdvice> pairs = advise_pairs(topology);
    ASSERT_EQ(pairs.size() + 1, topology.dimensions.size());
    for (const PairAdvice& pair : pairs) {
      EXPECT_EQ(pair.exact, Provision::kOver) << system.name << " dimension " << int{pair.inner} + 1;
      EXPECT_EQ(pair.paper, Provision::kOver) << system.name << " dimension " << int{pair.inner} + 1;
      EXPECT_LT(pair.r, 1);
    }
  }
}

TEST(Advice, RIsTheFormula) {
  // 16 x 64, 1200 and 800 Gb/s: [63/64 / (16 * 800)] / [15/16 / 1200].
  const PairAdvice pair = advise_pairs(two(16, 1200, 64, 800)).front();
  EXPECT_NEAR(pair.r, (63.0 / 64 / (16 * 800)) / (15.0 / 16 / 1200), 1e-12);
  EXPECT_NEAR(pair.paper_ratio, 1200.0 / (16 * 800), 1e-12);
  EXPECT_NEAR(pair.just_enough_gbps, 78.75, 1e-9);
}

TEST(Advice, TheTwoVerdictsDifferWherePartsOfTheBytesDiffer) {
  // By bytes, 4 x 2 is balanced with BW_1 = 6 BW_2. By the paper's rule it is balanced with BW_1 = 4 BW_2.
  EXPECT_EQ(advise_pairs(two(4, 600, 2, 100)).front().exact, Provision::kJustEnough);
  EXPECT_EQ(advise_pairs(two(4, 600, 2, 100)).front().paper, Provision::kUnder);
  EXPECT_EQ(advise_pairs(two(4, 400, 2, 100)).front().exact, Provision::kOver);
  EXPECT_EQ(advise_pairs(two(4, 400, 2, 100)).front().paper, Provision::kJustEnough);
  EXPECT_EQ(advise_pairs(two(4, 700, 2, 100)).front().exact, Provision::kUnder);
  EXPECT_EQ(advise_pairs(two(8, 800, 8, 100)).front().exact, Provision::kJustEnough);
  EXPECT_EQ(advise_pairs(two(8, 800, 8, 100)).front().paper, Provision::kJustEnough);
}

TEST(Advice, ReducingSwitchesSendLess) {
  Topology topology = two(16, 1600, 8, 100);
  topology.dimensions[0].in_network_reduction = topology.dimensions[1].in_network_reduction = true;
  EXPECT_EQ(advise_pairs(topology).front().exact, Provision::kJustEnough);
}

TEST(Advice, TheDimensionThatTheBaselineFillsIsTheOneThatHelps) {
  const Advice advice = advise({to_topology(paper_systems()[0]), 100'000'000, 64}).value();
  EXPECT_EQ(advice.policies.front().policy, "baseline");
  EXPECT_EQ(advice.helps_baseline, 0u);
  EXPECT_GT(advice.marginal[0].baseline_saved_ns, 0);
  EXPECT_NEAR(advice.marginal[1].baseline_saved_ns, 0, advice.marginal[0].baseline_saved_ns / 4);
  EXPECT_GT(advice.policies.front().links[0].utilization, 0.9);
  EXPECT_LT(advice.policies.front().links[1].utilization, 0.2);
  EXPECT_NEAR(advice.policies.front().links[1].wasted_gbps, 800 * (1 - advice.policies.front().links[1].utilization),
              1e-6);
  for (const PolicyAdvice& policy : advice.policies) {
    EXPECT_GE(policy.time_ns, advice.policies[advice.best].time_ns);
    EXPECT_GE(policy.over_ideal, 1);
    EXPECT_LE(policy.recovered, 1);
  }
  EXPECT_GT(advice.policies[advice.best].recovered, 0.9);
  EXPECT_TRUE(advice.alike);
  // The bound is bytes over bandwidth, so one more of 2000 Gb/s saves a 2001st of the time.
  EXPECT_NEAR(advice.marginal[1].bound_saved_ns, advice.ideal_time_ns / 2001, advice.ideal_time_ns / 200'000);
}

TEST(Advice, UnderProvisionedSystemsHaveNothingToRecoverByOrders) {
  const Advice advice = advise({two(4, 1600, 4, 100), 100'000'000, 64}).value();
  EXPECT_EQ(advice.pairs.front().exact, Provision::kUnder);
  EXPECT_EQ(advice.helps_baseline, 1u);
  EXPECT_EQ(advice.helps_best, 1u);
  EXPECT_FALSE(advice.alike);
  EXPECT_NEAR(advice.marginal[0].bound_saved_ns, 0, 1);
  EXPECT_GT(advice.policies[advice.best].time_ns, 0.9 * advice.policies.front().time_ns);
}

TEST(Advice, DimensionsOfSizeOneAreNotAdvisedOn) {
  Topology topology = two(4, 1600, 1, 100);
  const Advice advice = advise({topology, 1 << 20, 4}).value();
  EXPECT_TRUE(advice.pairs.empty());
  EXPECT_EQ(advice.marginal.size(), 1u);
}

TEST(Advice, RefusesWhatTheModelRefuses) {
  EXPECT_FALSE(advise({two(4, 1600, 4, 0), 1 << 20, 4}).ok());
  EXPECT_FALSE(advise({two(4, 1600, 4, 100), 0, 4}).ok());
  EXPECT_FALSE(advise({two(4, 1600, 4, 100), 1 << 20, 0}).ok());
  EXPECT_FALSE(advise({Topology{}, 1 << 20, 4}).ok());
}

}  // namespace
}  // namespace trestle
