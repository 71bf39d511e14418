// What the ranks of a sparse exchange do next: collectives by rule, ratios by objectives, and when that changes.
#include "compress/exchange_choice.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trestle {
namespace {

ExchangeSettings eight_workers() {
  ExchangeSettings settings;
  settings.count = 25'557'032;
  settings.workers = 8;
  settings.ratio = 0.01;
  settings.cost = LinkCost{1e-3, 1.6e-9};
  return settings;
}

ExchangePlan plan_of(const ExchangeSettings& settings) {
  return ExchangeChoice(settings).plan();
}

std::vector<RatioSample> some_samples() {
  return {{0.1, 0.9, 5e-3}, {0.033, 0.7, 4e-3}, {0.011, 0.5, 3e-3}, {0.004, 0.3, 2e-3}, {0.001, 0.1, 1e-3}};
}

std::vector<double> gains_of(double gain) {
  return std::vector<double>(20, gain);
}

TEST(ExchangeChoice, HasWhatTheMethodAllows) {
  ExchangeSettings settings = eight_workers();
  settings.ratio = 0.001;
  for (const SparseMethod method : {SparseMethod::kStar, SparseMethod::kVar}) {
    settings.method = method;
    EXPECT_EQ(plan_of(settings).collective, SparseCollective::kTree) << "without the all-gather rule 5a decides";
    EXPECT_EQ(plan_of(settings).method, method);
  }
  settings.ratio = 0.1;
  for (const SparseMethod method : {SparseMethod::kExact, SparseMethod::kMultiSampling}) {
    settings.method = method;
    EXPECT_EQ(plan_of(settings).collective, SparseCollective::kAllGather);
  }
  settings.method = SparseMethod::kAuto;
  settings.collective = SparseCollective::kTree;
  EXPECT_EQ(plan_of(settings).collective, SparseCollective::kTree) << "as was asked for";
  EXPECT_EQ(plan_of(settings).method, SparseMethod::kStar);
  settings.collective = SparseCollective::kAllGather;
  EXPECT_EQ(plan_of(settings).method, SparseMethod::kExact);
}

TEST(ExchangeChoice, CountsElementsByLayer) {
  ExchangeSettings settings;
  settings.count = 12;
  settings.method = SparseMethod::kLayerwise;
  settings.layers = {1, 0, 11};
  settings.ratio = 0.1;
  EXPECT_EQ(plan_of(settings).elements, 1u + 0 + 2);
  settings.count = 0;
  settings.layers = {};
  EXPECT_EQ(plan_of(settings).elements, 0u);
}

TEST(ExchangeChoice, NeedsCostsOnlyToChoose) {
  const auto needs = [](auto change) {
    ExchangeSettings settings = eight_workers();
    settings.cost.reset();
    change(settings);
    return ExchangeChoice(settings).needs_cost();
  };
  EXPECT_TRUE(needs([](ExchangeSettings&) {}));
  EXPECT_TRUE(needs([](ExchangeSettings& s) { s.method = SparseMethod::kStar; }));
  EXPECT_FALSE(needs([](ExchangeSettings& s) { s.method = SparseMethod::kExact; }));
  EXPECT_TRUE(needs([](ExchangeSettings& s) { s.method = SparseMethod::kExact, s.ratio = 0; }));
  EXPECT_FALSE(needs([](ExchangeSettings& s) { s.collective = SparseCollective::kRing; }));
  EXPECT_FALSE(needs([](ExchangeSettings& s) { s.cost = LinkCost{1, 1}; }));
  EXPECT_FALSE(needs([](ExchangeSettings& s) { s.workers = 1; }));
  EXPECT_FALSE(needs([](ExchangeSettings& s) { s.count = 0; }));
}

TEST(ExchangeChoice, MeasuresCandidatesAndChoosesAmongThem) {
  ExchangeSettings settings = eight_workers();
  settings.ratio = 0;
  ExchangeChoice choice(settings);
  EXPECT_TRUE(choice.measures());
  EXPECT_EQ(choice.steps_to_review(), ExchangeChoice::kMeasuredSteps);
  EXPECT_EQ(choice.plan().ratio, 0.1);
  choice.review({.gains = std::vector<double>(10, 0.9), .messages = {}, .samples = some_samples()});
  EXPECT_FALSE(choice.measures());
  EXPECT_EQ(choice.steps_to_review(), settings.review_steps);
  const RatioChoice best = choice.best_ratio(some_samples()).value();
  EXPECT_EQ(choice.plan().ratio, best.ratio);
  EXPECT_GT(best.ratio, 0.001);
  EXPECT_LT(best.ratio, 0.1);
  EXPECT_EQ(choice.plan_changes(), 1u);
  EXPECT_EQ(choice.gain_changes(), 0u);
}

TEST(ExchangeChoice, MeasuresAgainWhileNoGainIsANumber) {
  ExchangeSettings settings = eight_workers();
  settings.ratio = 0;
  ExchangeChoice choice(settings);
  choice.review({.gains = std::vector<double>(10, std::nan("")), .messages = {}, .samples = {}});
  EXPECT_TRUE(choice.measures());
  EXPECT_EQ(choice.plan().ratio, 0.1);
  choice.review({.gains = std::vector<double>(10, 0.9), .messages = {}, .samples = some_samples()});
  EXPECT_FALSE(choice.measures());
  EXPECT_LT(choice.plan().ratio, 0.1);
}

TEST(ExchangeChoice, MeasuresAgainWhenTheGainHasChanged) {
  ExchangeSettings settings = eight_workers();
  settings.ratio = 0;
  ExchangeChoice choice(settings);
  choice.review({.gains = gains_of(0.9), .messages = {}, .samples = some_samples()});
  // Not the change that the new ratio makes.
  choice.review({.gains = gains_of(0.5), .messages = {}, .samples = {}});
  choice.review({.gains = gains_of(0.52), .messages = {}, .samples = {}});
  EXPECT_FALSE(choice.measures());
  EXPECT_EQ(choice.gain_changes(), 0u);
  choice.review({.gains = gains_of(0.56), .messages = {}, .samples = {}});
  EXPECT_TRUE(choice.measures());
  EXPECT_EQ(choice.gain_changes(), 1u);
  EXPECT_NEAR(choice.smoothed_gain(), 0.56, 1e-12);
  choice.review({.gains = gains_of(0.56), .messages = {}, .samples = some_samples()});
  EXPECT_FALSE(choice.measures());
}

TEST(ExchangeChoice, CountsGainsOfARatioThatWasGiven) {
  ExchangeChoice choice(eight_workers());
  choice.review({.gains = gains_of(0.5), .messages = {}, .samples = {}});
  choice.review({.gains = gains_of(0.8), .messages = {}, .samples = {}});
  EXPECT_EQ(choice.gain_changes(), 1u);
  EXPECT_FALSE(choice.measures()) << "there is nothing to choose";
  choice.set_ratio(0.1);
  EXPECT_EQ(choice.plan().ratio, 0.1);
  EXPECT_EQ(choice.plan().collective, SparseCollective::kRing);
  choice.review({.gains = gains_of(0.99), .messages = {}, .samples = {}});
  EXPECT_EQ(choice.gain_changes(), 1u) << "another ratio has another gain";
}

// The network becomes slow: the collective with less data wins.
TEST(ExchangeChoice, FollowsTheLinks) {
  ExchangeSettings settings = eight_workers();
  settings.cost.reset();
  ExchangeChoice choice(settings);
  const auto messages = [&](LinkCost cost, SparseCollective collective) {
    std::vector<TimedMessage> messages;
    for (const double elements : {1e2, 1e4, 1e6}) {
      TimedMessage message = timed_exchange(collective, elements, 8, 0);
      message.seconds = message.startups * cost.startup_s + message.bytes * cost.per_byte_s;
      messages.push_back(message);
    }
    return messages;
  };
  choice.measured(messages({1e-3, 1e-10}, SparseCollective::kAllGather));
  EXPECT_NEAR(choice.cost().startup_s, 1e-3, 1e-9);
  EXPECT_EQ(choice.plan().collective, SparseCollective::kAllGather);
  EXPECT_EQ(choice.link_changes(), 0u);
  choice.review(
      {.gains = gains_of(0.5), .messages = messages({1e-3, 1e-10}, SparseCollective::kAllGather), .samples = {}});
  EXPECT_EQ(choice.link_changes(), 0u);
  for (int i = 0; i < 100; ++i) {
    choice.review(
        {.gains = gains_of(0.5), .messages = messages({1e-3, 1e-8}, SparseCollective::kAllGather), .samples = {}});
  }
  EXPECT_GE(choice.link_changes(), 1u);
  EXPECT_EQ(choice.plan().collective, SparseCollective::kRing);
  EXPECT_EQ(choice.plan().method, SparseMethod::kStar);
}

TEST(ExchangeChoice, KeepsCostsThatWereGiven) {
  ExchangeChoice choice(eight_workers());
  choice.review({.gains = gains_of(0.5), .messages = {{1, 1, 1}}, .samples = {}});
  EXPECT_EQ(choice.cost().startup_s, 1e-3);
  EXPECT_EQ(choice.link_changes(), 0u);
}

}  // namespace
}  // namespace trestle
