// Compression in `trestle train`: as a liberty, as a policy, and what is printed of it.
#include <algorithm>

#include "cli/train/train.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

TrainOptions bert_large(const char* policies, const char* allow) {
  TrainOptions options;
  options.workload = "bert_large@dear";
  options.network = "26e-6,0.8e-9,0,64,ring";
  options.policies = policies;
  options.allow = allow;
  options.json = true;
  return options;
}

TEST(TrainTopK, IsAmongAllPoliciesWhereItIsAllowed) {
  EXPECT_EQ(train(bert_large("all", "")).value().find("topk"), std::string::npos);
  const Json policies = read_json(train(bert_large("all", "stale,compression")).value()).at("policies");
  const auto topk = std::ranges::find(policies, "topk:hidden", [](const Json& each) { return each.at("policy"); });
  ASSERT_NE(topk, policies.end());
  EXPECT_NEAR(topk->at("ratio"), 0.035, 0.005);
  EXPECT_EQ(topk->at("collective"), "ring");
  EXPECT_NEAR(topk->at("selection_s"), 0.12e-9 * 336226108, 1e-12);
  EXPECT_FALSE(topk->at("gather_groups").empty());
}

TEST(TrainTopK, IsWhatAutoTakesWhereItIsFastestAndAllowed) {
  const auto chosen = [](const char* allow) {
    return read_json(train(bert_large("auto", allow)).value())["policies"][0]["chosen"];
  };
  EXPECT_EQ(chosen(""), "split_optimal:free");
  EXPECT_EQ(chosen("compression"), "topk:hidden");
}

TEST(TrainTopK, IsPrinted) {
  TrainOptions options = bert_large("topk:0.011", "");
  options.json = false;
  expect_parts(train(options).value(), {"0.011 of the elements by ring, 40.347 ms to select them"});
  options.scale = "4..64";
  expect_parts(train(options).value(), {"topk:0.011"});
}

}  // namespace
}  // namespace trestle
