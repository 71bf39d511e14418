// `trestle train --scale`: a step on more and more workers.
#include "cli/train/scale.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/train/train.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

// MG-WFBP's ring of 10 Gb/s.
TrainOptions ring() {
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
  TrainOptions options = ring();
  options.json = true;
  const JsonValue json = read_json(train(options).value());
  EXPECT_EQ(keys_of(json), (std::set<std::string>{"workload", "compute_s", "algorithm", "workers", "curves"}));
  ASSERT_EQ(member(json, "workers").items.size(), 10u);
  const std::vector<JsonValue>& curves = member(json, "curves").items;
  ASSERT_EQ(curves.size(), 4u);
  TrainOptions alone = ring();
  alone.scale.clear();
  alone.network = "85.714285714e-6,8.5714285714e-10,0,128,ring";
  const TrainReport at_128 = predict_training(alone).value();
  for (size_t c = 0; c < 4; ++c) {
    const JsonValue& point = member(curves[c], "points").items[5];
    EXPECT_EQ(member(curves[c], "policy").text, at_128.asked[c]);
    EXPECT_EQ(member(point, "iteration_s").number, at_128.steps[c].time.iteration_s);
    EXPECT_NEAR(member(point, "speedup").number, 128 * 0.615 / at_128.steps[c].time.iteration_s, 1e-9);
    EXPECT_NEAR(member(point, "over_wfbp").number, speedup(at_128, c), 1e-12);
    EXPECT_EQ(member(point, "messages").whole, at_128.steps[c].time.messages.size());
  }
  // 810.7 ms by Algorithm 1 in one message, 637.1 ms at best in ten.
  EXPECT_NEAR(member(member(curves[2], "points").items[5], "iteration_s").number, 0.8107, 5e-5);
  EXPECT_EQ(member(member(curves[2], "points").items[5], "messages").whole, 1u);
  EXPECT_NEAR(member(member(curves[3], "points").items[5], "iteration_s").number, 0.6371, 5e-5);
  EXPECT_EQ(member(member(curves[3], "points").items[5], "messages").whole, 10u);
}

TEST(TrainScale, ShowsTimesAndSpeedUps) {
  const std::string text = train(ring()).value();
  EXPECT_NE(text.find("time per step, ms\nworkers"), std::string::npos) << text;
  EXPECT_NE(text.find("speed-up over one worker\nworkers"), std::string::npos) << text;
  EXPECT_NE(text.find("\n2048 "), std::string::npos) << text;
}

TEST(TrainScale, DrawsCurves) {
  TrainOptions options = ring();
  options.plot = testing::TempDir() + "trestle_curves_" + std::to_string(::getpid()) + ".svg";
  ASSERT_TRUE(train(options).ok());
  std::ifstream file(options.plot);
  const std::string svg((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::filesystem::remove(options.plot);
  EXPECT_EQ(xml_fault(svg), "");
  for (const char* part : {">2048<", ">mgwfbp_paper<", "time per step", "optimal, 128 workers: 637."}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
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

std::string fault(TrainOptions options, std::string TrainOptions::*member, const char* value) {
  options.*member = value;
  const Result<std::string> printed = train(options);
  return printed.ok() ? "accepted" : printed.error().message;
}

TEST(TrainScale, NamesOptionsThatAreWrong) {
  EXPECT_EQ(fault(ring(), &TrainOptions::scale, "64"), "--scale: \"64\" is not a range like 4..2048");
  EXPECT_EQ(fault(ring(), &TrainOptions::scale, "8..4"), "--scale: 8..4 ends below its beginning");
  EXPECT_EQ(fault(ring(), &TrainOptions::scale, "0..4"), "--scale: 0 is not from 1 to 1073741824");
  EXPECT_EQ(fault(ring(), &TrainOptions::network, ""), "--scale: needs --network, whose number of workers it replaces");
  EXPECT_EQ(fault(ring(), &TrainOptions::cost, "1,1"), "--scale: goes with --network alone");
}

}  // namespace
}  // namespace trestle
