// The model of the loss in `trestle train`: what it lets deft do, what is printed of it, and values that are wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/train/train.h"
#include "cli/train/train_loss.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

// VGG-19 as DeFT's table II has it, with the corrected bucket 4, on two links. A byte takes a microsecond, so each
// tensor is a bucket.
class TrainLoss : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << R"({"tensors": [
      {"bytes": 1968, "forward_s": 0.001238, "backward_s": 0.072496},
      {"bytes": 11262, "forward_s": 0.028799, "backward_s": 0.012786},
      {"bytes": 15447, "forward_s": 0.004801, "backward_s": 0.004872},
      {"bytes": 188643, "forward_s": 0.001899, "backward_s": 0.002319},
      {"bytes": 31754, "forward_s": 0.000326, "backward_s": 0.000484},
      {"bytes": 8651, "forward_s": 0.000103, "backward_s": 0.000162}]})";
    options_.workload = path_;
    options_.cost = "0,1e-6";
    options_.policies = "deft:1";
    options_.links = "1,1.65";
    options_.loss = "0.2103,0,0.01,0.4525,0.1,256";  // what row O_B of table V implies
    options_.json = true;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  JsonValue deft() const { return member(read_json(train(options_).value()), "policies").items.at(0); }
  std::string fault() const {
    const Result<std::string> printed = train(options_);
    return printed.ok() ? "accepted" : printed.error().message;
  }

  std::string path_ = testing::TempDir() + "trestle_loss_" + std::to_string(::getpid()) + ".json";
  TrainOptions options_;
};

// Section 4: sums keep the loss where single updates would; means do not, until every step has an update.
TEST_F(TrainLoss, LetsKnapsacksGrowForMeansOnly) {
  options_.loss_merged = "sum";
  const JsonValue sum = deft();
  EXPECT_EQ(member(sum, "capacity").number, 1);
  EXPECT_NEAR(member(sum, "loss_ratio").number, 1, 0.0005);
  EXPECT_EQ(member(sum, "loss_accepted").whole, 1u);
  EXPECT_EQ(member(sum, "batches").items.size(), 3u);
  options_.loss_merged = "mean";
  const JsonValue mean = deft();
  EXPECT_EQ(member(mean, "capacity").number, 1.3);
  EXPECT_EQ(member(mean, "loss_ratio").number, 1);
  EXPECT_EQ(member(mean, "loss_accepted").whole, 1u);
  EXPECT_EQ(member(mean, "batches").items.size(), 1u);
  EXPECT_EQ(member(mean, "updates_per_iteration").number, 399.0 / 400);  // the first step has none
  EXPECT_GT(member(mean, "iteration_s").number, member(sum, "iteration_s").number);
}

TEST_F(TrainLoss, AcceptsWhatEpsilonSays) {
  options_.loss_merged = "mean";
  options_.loss_epsilon = "0.05";
  EXPECT_EQ(member(deft(), "capacity").number, 1);
  options_.loss_epsilon = "0";
  EXPECT_EQ(member(deft(), "capacity").number, 1.3);
}

TEST_F(TrainLoss, IsPrinted) {
  options_.loss_merged = "mean";
  options_.json = false;
  EXPECT_NE(
      train(options_).value().find("loss after single over merged updates 1.0000 (accepted), knapsacks of 1.3 passes"),
      std::string::npos);
  options_.loss.clear();
  options_.loss_merged.clear();
  EXPECT_EQ(train(options_).value().find("knapsacks"), std::string::npos);
  options_.json = true;
  EXPECT_EQ(keys_of(deft()).count("loss_ratio"), 0u);
}

// Of the other policies the model says nothing.
TEST_F(TrainLoss, ConcernsOnlyDelayedUpdates) {
  options_.policies = "wfbp";
  EXPECT_EQ(keys_of(deft()).count("loss_ratio"), 0u);
}

TEST_F(TrainLoss, ThatIsWrongIsNamed) {
  options_.loss = "1,2,3";
  EXPECT_EQ(fault(), "--loss: \"1,2,3\" is not loss,least,rate,drift,deviation,batch");
  options_.loss = "1,0,nan,1,1,1";
  EXPECT_EQ(fault(), "--loss: \"nan\" is not a number");
  options_.loss = "1,0,0.1,-1,-2,1";
  EXPECT_EQ(fault(), "--loss: -2 is negative");
  options_.loss = "1,0,0.1,-1,2,0";
  EXPECT_EQ(fault(), "--loss: a batch of 0 samples");
  options_.loss = "1,0,0.1,-1,2,1";
  options_.loss_merged = "median";
  EXPECT_EQ(fault(), "--loss-merged: \"median\" is neither sum nor mean");
  options_.loss_merged.clear();
  options_.loss_epsilon = "-1";
  EXPECT_EQ(fault(), "--loss-epsilon: -1 is negative");
  options_.loss.clear();
  EXPECT_EQ(fault(), "--loss-epsilon: goes with --loss");
  options_.loss_epsilon.clear();
  options_.loss_merged = "sum";
  EXPECT_EQ(fault(), "--loss-merged: goes with --loss");
}

}  // namespace
}  // namespace trestle
