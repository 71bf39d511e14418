// `trestle train --scale`: a step on more and more workers.
#include "cli/train/scale.h"

#include "cli/train/train.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

// MG-WFBP's ring of 10 Gb/s.
TrainOptions scaled_ring() {
  TrainOptions options;
  options.workload = "resnet50@k80";
  options.network = "85.714285714e-6,8.5714285714e-10,0,64,ring";
  options.policies = "wfbp,sync,mgwfbp_paper,optimal";
  options.scale = "4..2048";
  return options;
}

TEST(TrainScale, DoublesTheWorkers) {
  EXPECT_EQ(workers_of(parse_scale("4..64").value()), (std::vector<uint32_t>{4, 8, 16, 32, 64}));
  EXPECT_EQ(workers_of(parse_scale("3..10").value()), (std::vector<uint32_t>{3, 6, 10}));
  EXPECT_EQ(workers_of(parse_scale("1..1").value()), std::vector<uint32_t>{1});
}

TEST(TrainScale, HasTheTimesThatEachNumberOfWorkersHasAlone) {
  TrainOptions options = scaled_ring();
  options.json = true;
  Json json = read_json(train(options).value());
  EXPECT_EQ(keys_of(json), "workload compute_s algorithm workers curves");
  ASSERT_EQ(json["workers"].size(), 10u);
  ASSERT_EQ(json["curves"].size(), 4u);
  TrainOptions alone = scaled_ring();
  alone.scale.clear();
  alone.network = "85.714285714e-6,8.5714285714e-10,0,128,ring";
  const TrainReport at_128 = predict_training(alone).value();
  for (size_t c = 0; c < 4; ++c) {
    Json point = json["curves"][c]["points"][5];
    EXPECT_EQ(json["curves"][c]["policy"], at_128.asked[c]);
    EXPECT_EQ(point["iteration_s"], at_128.steps[c].time.iteration_s);
    EXPECT_NEAR(point["speedup"], 128 * 0.615 / at_128.steps[c].time.iteration_s, 1e-9);
    EXPECT_NEAR(point["over_wfbp"], speedup(at_128, c), 1e-12);
    EXPECT_EQ(point["messages"], at_128.steps[c].time.messages.size());
  }
  // 810.7 ms by Algorithm 1 in one message, 637.1 ms at best in ten.
  EXPECT_NEAR(json["curves"][2]["points"][5]["iteration_s"], 0.8107, 5e-5);
  EXPECT_EQ(json["curves"][2]["points"][5]["messages"], 1);
  EXPECT_NEAR(json["curves"][3]["points"][5]["iteration_s"], 0.6371, 5e-5);
  EXPECT_EQ(json["curves"][3]["points"][5]["messages"], 10);
}

TEST(TrainScale, ShowsAndDrawsCurves) {
  const NamedFile picture("curves.svg");
  TrainOptions options = scaled_ring();
  options.plot = picture.path();
  expect_parts(train(options).value(), {"time per step, ms\nworkers", "speed-up over one worker\nworkers", "\n2048 "});
  EXPECT_EQ(xml_fault(picture.text()), "");
  expect_parts(picture.text(), {">2048<", ">mgwfbp_paper<", "optimal, 128 workers: 637."});
}

// A step without compute and messages has no place on a logarithmic axis.
TEST(TrainScale, DrawsStepsThatTakeNoTime) {
  GradientWorkload workload;
  workload.tensors.push_back({"w", 4, 0, 0});
  const ScaleReport report =
      scale_training({"nothing", workload, {}, {1, 2}, {parse_gradient_policy("wfbp").value()}, kLibertyNone, {}});
  EXPECT_EQ(xml_fault(scale_svg(report)), "");
  EXPECT_EQ(scale_svg(report).find("nan"), std::string::npos);
  EXPECT_EQ(report.curves[0].points[0]->speedup, 0);
}

}  // namespace
}  // namespace trestle
