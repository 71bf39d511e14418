// Worked cases of the planners' specification: every number to 1e-9.
#include <gtest/gtest.h>

#include "gradient/dear_equations.h"
#include "gradient/policy/by_sizes.h"
#include "gradient/policy/dear.h"
#include "gradient/policy/mgwfbp_paper.h"
#include "gradient/policy/optimal.h"
#include "gradient/policy/priority.h"
#include "gradient/policy/us_byte.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

using Groups = std::vector<TensorGroup>;

void expect_equal(double got, double wanted, const char* what) {
  EXPECT_NEAR(got, wanted, 1e-9 * std::max(1.0, std::abs(wanted))) << what;
}

struct MergeCase {
  GradientWorkload workload;
  MessageCost cost;
  Groups paper;
  Groups optimal;
  double naive_s, wfbp_s, sync_s, paper_s, optimal_s;
};

void check(const MergeCase& each) {
  const GradientLink link = halved_link(each.cost);
  const auto tensors = static_cast<uint32_t>(each.workload.tensors.size());
  const GradientPlan paper = plan_mgwfbp_paper(each.workload, each.cost);
  const GradientPlan optimal = plan_optimal(each.workload, each.cost);
  EXPECT_EQ(paper.groups, each.paper);
  EXPECT_EQ(optimal.groups, each.optimal);
  expect_equal(iteration_s(plan_naive(tensors), each.workload, link), each.naive_s, "naive");
  expect_equal(iteration_s(plan_wfbp(tensors), each.workload, link), each.wfbp_s, "wfbp");
  expect_equal(iteration_s(plan_sync(tensors), each.workload, link), each.sync_s, "sync");
  expect_equal(iteration_s(paper, each.workload, link), each.paper_s, "paper");
  expect_equal(iteration_s(optimal, each.workload, link), each.optimal_s, "optimal");
}

// MG-WFBP's theorem 1 says that its Algorithm 1 is optimal.
TEST(MergeVectors, ThreeTensorsForWhichAlgorithm1IsNotOptimal) {
  check(
      {workload_from({1, 2, 3}, {2, 0, 0}, {4, 3, 2}), {4, 1}, {{0, 0}, {1, 2}}, {{0, 1}, {2, 2}}, 29, 22, 21, 21, 18});
}

TEST(MergeVectors, FiveTensors) {
  check({workload_from({1000, 200, 200, 4000, 100}, {1, 0, 0, 0, 0}, {5.0, 0.2, 0.2, 3.0, 0.1}),
         {0.5, 0.001},
         {{0, 0}, {1, 3}, {4, 4}},
         {{0, 0}, {1, 3}, {4, 4}},
         17.5,
         11.499999999999998,
         15.5,
         11,
         11});
}

struct DearCase {
  uint64_t most_bytes;
  Groups groups;
  double backward_s, eager_s, one_ahead_s;  // phases: backward, then forward by issue
};

TEST(DearVectors, FourLayersInBuffersOfFourSizes) {
  const GradientWorkload workload = workload_from({10, 20, 30, 40}, {9, 1, 1, 2}, {6, 2, 2, 4});
  const GradientLink link = halved_link({2, 0.2});
  const DearCase cases[] = {{10, {{0, 0}, {1, 1}, {2, 2}, {3, 3}}, 18, 16, 22},
                            {50, {{0, 1}, {2, 2}, {3, 3}}, 18, 17, 21},
                            {60, {{0, 2}, {3, 3}}, 21, 20, 20},
                            {100, {{0, 3}}, 25, 24, 24}};
  for (const DearCase& each : cases) {
    EXPECT_EQ(dear_groups(workload, each.most_bytes), each.groups) << each.most_bytes;
    for (const bool eager : {true, false}) {
      const GatherIssue issue = eager ? GatherIssue::kEager : GatherIssue::kOneAhead;
      const StepTime step = time_step(plan_dear(workload, each.most_bytes, issue), workload, link);
      const double forward_s = eager ? each.eager_s : each.one_ahead_s;
      expect_equal(step.backward_start_s, forward_s, "forward phase");
      expect_equal(step.iteration_s, forward_s + each.backward_s, "iteration");
      expect_equal(step.exposed_s, forward_s - 13 + each.backward_s - 14, "exposed");
      EXPECT_EQ(step.messages.size(), 2 * each.groups.size());
    }
  }
}

TEST(DearVectors, Equations) {
  const DearTimes times{0.0732, 0.1464, 0.08178, 0.08178};
  expect_equal(dear_step_s(times), 0.22818, "t_dear");
  expect_equal(dear_most_speedup(times, 64), 61.59347883250065, "s_max");
}

// DeFT's table II (VGG-19) in microseconds, with the sum of its last column corrected. A "byte" takes a microsecond.
GradientWorkload vgg19_us() {
  return workload_from({1968, 11262, 15447, 188643, 31754, 8651}, {1238, 28799, 4801, 1899, 326, 103},
                       {72496, 12786, 4872, 2319, 484, 162});
}

TEST(PriorityVectors, Vgg19) {
  const GradientLink link = halved_link({0, 1});
  const GradientWorkload workload = vgg19_us();
  expect_equal(iteration_s(plan_wfbp(6), workload, link), 295053, "DDP");
  expect_equal(iteration_s(plan_priority(workload, 13031).value(), workload, link), 258315.99999999953, "parts");
  expect_equal(iteration_s(plan_priority(workload, 1 << 30).value(), workload, link), 263299, "whole tensors");
  const GradientPlan greedy = plan_us_byte(workload, link.all_reduce, 13031).value();
  expect_equal(iteration_s(greedy, workload, link), 258315.99999999953, "without startups merging gains nothing");
}

}  // namespace
}  // namespace trestle
