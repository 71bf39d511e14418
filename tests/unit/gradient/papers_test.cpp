// The papers' networks under the planners of fused messages. tests/unit/cli/presets_test.cpp has the papers' figures.
#include <gtest/gtest.h>

#include "gradient/policy/optimal.h"
#include "gradient/policy/split_free.h"
#include "gradient/policy/split_shared.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

// One buffer size cannot serve both passes.
TEST(SplitPapers, BackwardWantsManyGroupsAndForwardFew) {
  const GradientWorkload workload = built_in_workload("resnet50@dear").value();
  const GradientPlan plan = plan_split_free(workload, ethernet_64());
  EXPECT_GE(plan.groups.size(), 20u);
  EXPECT_EQ(plan.gather_groups.size(), 4u);
}

TEST(Planners, ServeTheMostTensors) {
  const GradientWorkload workload = built_in_workload("densenet201@dear").value();
  ASSERT_EQ(workload.tensors.size(), 604u);
  const GradientLink link = ethernet_64();
  for (const GradientPlan& plan :
       {plan_optimal(workload, link.all_reduce), plan_split_free(workload, link), plan_split_shared(workload, link)})
    EXPECT_TRUE(check_plan(plan, 604).ok());
}

}  // namespace
}  // namespace trestle
