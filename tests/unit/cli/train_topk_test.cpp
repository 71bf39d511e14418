// Compression in `trestle train`: as a liberty, as a policy, and what is printed of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/train/train.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

TrainOptions bert_large() {
  TrainOptions options;
  options.workload = "bert_large@dear";
  options.network = "26e-6,0.8e-9,0,64,ring";
  options.json = true;
  return options;
}

TEST(TrainTopK, IsAmongAllPoliciesWhereItIsAllowed) {
  TrainOptions options = bert_large();
  options.policies = "all";
  EXPECT_EQ(train(options).value().find("topk"), std::string::npos);
  options.allow = "stale,compression";
  const JsonValue json = read_json(train(options).value());
  const std::vector<JsonValue>& policies = member(json, "policies").items;
  const auto topk = std::find_if(policies.begin(), policies.end(),
                                 [](const JsonValue& each) { return member(each, "policy").text == "topk:hidden"; });
  ASSERT_NE(topk, policies.end());
  EXPECT_GT(member(*topk, "ratio").number, 0.03);
  EXPECT_LT(member(*topk, "ratio").number, 0.04);
  EXPECT_EQ(member(*topk, "collective").text, "ring");
  EXPECT_NEAR(member(*topk, "selection_s").number, 0.12e-9 * 336226108, 1e-12);
  EXPECT_FALSE(member(*topk, "gather_groups").items.empty());
}

TEST(TrainTopK, IsWhatAutoTakesWhereItIsFastestAndAllowed) {
  TrainOptions options = bert_large();
  options.policies = "auto";
  const auto chosen = [&options] {
    return member(member(read_json(train(options).value()), "policies").items.at(0), "chosen").text;
  };
  EXPECT_EQ(chosen(), "split_optimal:free");
  options.allow = "compression";
  EXPECT_EQ(chosen(), "topk:hidden");
}

TEST(TrainTopK, IsPrinted) {
  TrainOptions options = bert_large();
  options.json = false;
  options.policies = "topk:0.011";
  const std::string text = train(options).value();
  EXPECT_NE(text.find("0.011 of the elements by ring, 40.347 ms to select them"), std::string::npos) << text;
  options.scale = "4..64";
  EXPECT_NE(train(options).value().find("topk:0.011"), std::string::npos);
}

TEST(TrainTopK, NeedsANetwork) {
  TrainOptions options = bert_large();
  options.network.clear();
  options.cost = "3.276e-3,1.575e-9";
  options.policies = "topk:0.1";
  const Result<std::string> refused = train(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message.find("--policy: topk:0.1: needs the number of workers"), 0u)
      << refused.error().message;
}

}  // namespace
}  // namespace trestle
