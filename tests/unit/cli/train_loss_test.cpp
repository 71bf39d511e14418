// The model of the loss in `trestle train`: what it lets deft do, and what is printed of it.
#include "cli/train/train.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

// On two links.
class TrainLoss : public testing::Test {
 protected:
  TrainLoss() {
    options_.workload = file_.path();
    options_.cost = "0,1e-6";
    options_.policies = "deft:1";
    options_.links = "1,1.65";
    options_.loss = "0.2103,0,0.01,0.4525,0.1,256";  // what row O_B of table V implies
    options_.json = true;
  }
  Json step() const { return read_json(train(options_).value()).at("policies").at(0); }

  NamedFile file_{"loss.json", kVgg19};
  TrainOptions options_;
};

// Section 4: sums keep the loss where single updates would; means do not, until every step has an update.
TEST_F(TrainLoss, LetsKnapsacksGrowForMeansOnly) {
  options_.loss_merged = "sum";
  Json sum = step();
  EXPECT_EQ(sum["capacity"], 1);
  EXPECT_NEAR(sum["loss_ratio"], 1, 0.0005);
  EXPECT_EQ(sum["loss_accepted"], true);
  EXPECT_EQ(sum["batches"].size(), 3u);
  options_.loss_merged = "mean";
  Json mean = step();
  EXPECT_EQ(mean["capacity"], 1.3);
  EXPECT_EQ(mean["loss_ratio"], 1);
  EXPECT_EQ(mean["loss_accepted"], true);
  EXPECT_EQ(mean["batches"].size(), 1u);
  EXPECT_EQ(mean["updates_per_iteration"], 399.0 / 400);  // the first step has none
  EXPECT_GT(mean["iteration_s"], sum["iteration_s"]);
  options_.loss_epsilon = "0.05";
  EXPECT_EQ(step()["capacity"], 1);
  options_.loss_epsilon = "0";
  EXPECT_EQ(step()["capacity"], 1.3);
}

TEST_F(TrainLoss, IsPrintedOfDelayedUpdatesOnly) {
  options_.loss_merged = "mean";
  options_.json = false;
  expect_parts(train(options_).value(),
               {"loss after single over merged updates 1.0000 (accepted), knapsacks of 1.3 passes"});
  options_.json = true;
  options_.policies = "wfbp";
  EXPECT_FALSE(step().contains("loss_ratio")) << "of the other policies the model says nothing";
  options_.policies = "deft:1";
  options_.loss.clear();
  options_.loss_merged.clear();
  EXPECT_FALSE(step().contains("loss_ratio"));
}

}  // namespace
}  // namespace trestle
