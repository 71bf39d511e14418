// The lanes of a training step, and their picture.
#include "cli/train/step_lanes.h"

#include <sstream>

#include "cli/train/lanes_svg.h"
#include "cli/train/train.h"
#include "gradient/network_cost.h"
#include "gradient/policy/policies.h"
#include "unit/cli/views_support.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

// The three tensors of docs/training.md; an all-reduce takes 4 + 1 per byte.
GradientWorkload three_tensors() {
  return workload_from({1, 2, 3}, {2, 0, 0}, {4, 3, 2});
}

StepLanes lanes_of(const char* policy, const GradientWorkload& workload, const GradientLink& link,
                   const std::vector<double>& ratios = {}) {
  const PlannedStep step =
      plan_step(parse_gradient_policy(policy).value(), workload, link, kLibertyNone, ratios).value();
  return step_lanes(step, {workload, link, {}, kLibertyNone, ratios}).value();
}

std::string text_of(const StepLane& lane) {
  std::ostringstream text;
  for (const LaneSpan& span : lane.spans) {
    text << to_string(span.kind)[0] << span.label << ":" << span.start_s << "-" << span.end_s << " ";
  }
  return text.str();
}

TEST(StepLanes, AreThoseOfThePictureInTheDocs) {
  const GradientLink link = halved_link({4, 1});
  const StepLanes wfbp = lanes_of("wfbp", three_tensors(), link);
  ASSERT_EQ(wfbp.lanes.size(), 2u);
  EXPECT_EQ(text_of(wfbp.lanes[0]), "f0:0-2 b2:2-4 b1:4-7 b0:7-11 ");
  EXPECT_EQ(text_of(wfbp.lanes[1]), "a2:4-11 a1:11-17 a0:17-22 ");
  const StepLanes optimal = lanes_of("optimal", three_tensors(), link);
  EXPECT_EQ(text_of(optimal.lanes[0]), "f0-1:0-2 b2:2-4 b0-1:4-11 ");
  EXPECT_EQ(text_of(optimal.lanes[1]), "a2:4-11 a0-1:11-18 ");
  EXPECT_EQ(optimal.iteration_s, 18);
  EXPECT_EQ(optimal.lanes[1].spans[1].details, "all-reduce of tensors 0 to 1, 0.000 MB");
}

// The next forward pass waits for its all-gather, and the parts of a tensor for the backward pass.
TEST(StepLanes, OfSplitStepsBeginWithTheGathers) {
  const GradientWorkload workload = workload_from({2, 2}, {1, 1}, {1, 1});
  const StepLanes dear = lanes_of("dear:2:eager", workload, halved_link({2, 0}));
  EXPECT_EQ(text_of(dear.lanes[0]), "f0:1-2 f1:2-3 b1:3-4 b0:4-5 ");
  EXPECT_EQ(text_of(dear.lanes[1]), "a0:0-1 a1:1-2 r1:4-5 r0:5-6 ");
  EXPECT_EQ(dear.iteration_s, 6);
}

TEST(StepLanes, OfPartsBeginWithTheBackwardPass) {
  const StepLanes parts = lanes_of("priority:2", workload_from({1, 4, 4}, {1, 1, 1}, {2, 1, 1}), halved_link({0, 1}));
  EXPECT_EQ(text_of(parts.lanes[0]), "b2:0-1 b1:1-2 b0:2-4 f0:6-7 f1:8-9 f2:10-11 ");
  EXPECT_EQ(parts.iteration_s, 11);
}

TEST(StepLanes, HoldTheIterationOfEveryPolicyAndNothingOverlaps) {
  Rng rng(20);
  for (int round = 0; round < 60; ++round) {
    const GradientWorkload workload = random_workload(rng, 12);
    const GradientLink link = random_link(rng);
    for (const ChosenPolicy& chosen : allowed_policies(kLibertyNone)) {
      const Result<PlannedStep> step = plan_step(chosen, workload, link);
      ASSERT_TRUE(step.ok()) << chosen.text;
      const StepLanes lanes = step_lanes(step.value(), {workload, link, {}}).value();
      double end_s = 0;
      double compute_s = 0;
      for (const StepLane& lane : lanes.lanes) {
        for (size_t i = 0; i < lane.spans.size(); ++i) {
          if (i > 0) {
            EXPECT_GE(lane.spans[i].start_s, lane.spans[i - 1].end_s - 1e-9) << chosen.text;
          }
          end_s = std::max(end_s, lane.spans[i].end_s);
        }
      }
      for (const LaneSpan& span : lanes.lanes[0].spans) compute_s += span.end_s - span.start_s;
      EXPECT_NEAR(end_s, lanes.iteration_s, 1e-9 * (1 + end_s)) << chosen.text;
      EXPECT_NEAR(compute_s, workload.forward_s() + workload.backward_s(), 1e-9 * (1 + end_s)) << chosen.text;
    }
  }
}

TEST(StepLanes, OfDelayedUpdatesShowEveryLink) {
  const GradientWorkload workload = workload_from({2, 2}, {0.5, 0.5}, {0.5, 0.5});
  const StepLanes lanes = lanes_of("deft:2", workload, halved_link({0, 1}), {1.5});
  ASSERT_EQ(lanes.lanes.size(), 3u);
  EXPECT_EQ(lanes.lanes[2].name, "link 1");
  EXPECT_EQ(lanes.lanes[0].spans.size(), 12u) << "two passes of six steps";
  EXPECT_FALSE(lanes.lanes[1].spans.empty());
  EXPECT_FALSE(lanes.lanes[2].spans.empty());
  EXPECT_EQ(lanes.shown_s, 12) << "compute never waits";
  for (const StepLane& lane : lanes.lanes) {
    for (size_t i = 0; i < lane.spans.size(); ++i) {
      EXPECT_LE(lane.spans[i].end_s, lanes.shown_s);
      if (i > 0) {
        EXPECT_GE(lane.spans[i].start_s, lane.spans[i - 1].end_s);
      }
    }
  }
  EXPECT_NE(lanes.lanes[2].spans[0].details.find(", part "), std::string::npos) << lanes.lanes[2].spans[0].details;
}

TEST(LanesSvg, HasALanePerLinkAndTheTensorsOfEachMessage) {
  const GradientLink link = halved_link({4, 1});
  const std::string svg =
      lanes_svg("a <step>", {lanes_of("wfbp", three_tensors(), link), lanes_of("optimal", three_tensors(), link)});
  EXPECT_EQ(xml_fault(svg), "");
  expect_parts(svg, {"a &lt;step&gt;", ">compute<", ">link<", ">0-1<", "wfbp: 22000.000 ms per step",
                     "optimal: 18000.000 ms per step", "all-reduce of tensors 0 to 1, 0.000 MB: 11"});
  EXPECT_EQ(xml_fault(lanes_svg("nothing", {})), "");
}

TEST(TrainPlot, IsWrittenForAllPolicies) {
  const NamedFile picture("lanes.svg");
  TrainOptions options;
  options.workload = "resnet50@dear";
  options.network = "26e-6,0.8e-9,0,64,ring";
  options.allow = "stale";
  options.policies = "wfbp,dear:25M:eager,priority,deft,auto";
  options.links = "1,1.65";
  options.plot = picture.path();
  ASSERT_TRUE(train(options).ok());
  EXPECT_EQ(xml_fault(picture.text()), "");
  expect_parts(picture.text(), {">link 1<", ">link 0<", "wfbp: 761.645 ms", "auto, "});
}

}  // namespace
}  // namespace trestle
