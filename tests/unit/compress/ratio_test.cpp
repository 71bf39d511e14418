// The choice of a compression ratio, and when it is made again.
#include "compress/ratio.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compress/triggers.h"

namespace trestle {
namespace {

RatioSearch some_search() {
  RatioSearch search;
  search.samples = {{0.1, 0.9, 5e-3}, {0.033, 0.7, 4e-3}, {0.011, 0.5, 3e-3}, {0.004, 0.3, 2e-3}, {0.001, 0.1, 1e-3}};
  search.exchange = {1e8, 0, 8, 1e-3, 1e-9};
  return search;
}

double ratio_of(const RatioSearch& search) {
  const Result<RatioChoice> choice = choose_ratio(search);
  EXPECT_TRUE(choice.ok());
  return choice.value().ratio;
}

TEST(Ratio, InterpolatesInTheLogarithm) {
  const std::vector<RatioSample> samples = {{0.001, 0.2, 1}, {0.1, 0.8, 3}};
  EXPECT_NEAR(interpolate(samples, 0.01).gain, 0.5, 1e-12);
  EXPECT_NEAR(interpolate(samples, 0.01).compress_s, 2, 1e-12);
  EXPECT_EQ(interpolate(samples, 0.1).gain, 0.8);
  EXPECT_EQ(interpolate(samples, 0.5).gain, 0.8);
  EXPECT_EQ(interpolate(samples, 0.0001).gain, 0.2);
}

TEST(Ratio, LiesBetweenTheCandidates) {
  const RatioSearch search = some_search();
  const RatioChoice choice = choose_ratio(search).value();
  EXPECT_GT(choice.ratio, 0.001);
  EXPECT_LT(choice.ratio, 0.1);
  SparseExchange exchange = search.exchange;
  exchange.ratio = choice.ratio;
  EXPECT_EQ(choice.exchange_s, sparse_costs(exchange).of(choice.collective));
  EXPECT_EQ(choice.collective, cheapest(sparse_costs(exchange)));
}

// The best point of the scan is where both weighted objectives are equal, as one falls and the other rises with c.
TEST(Ratio, BalancesWeightedObjectives) {
  const RatioSearch search = some_search();
  const RatioChoice choice = choose_ratio(search).value();
  SparseExchange exchange = search.exchange;
  const auto time = [&](double ratio) {
    exchange.ratio = ratio;
    const SparseCosts costs = sparse_costs(exchange);
    return costs.of(cheapest(costs));
  };
  const double time_part = (time(choice.ratio) - time(0.001)) / (time(0.1) - time(0.001));
  const double gain_part = (1 / choice.gain - 1 / 0.9) / (1 / 0.1 - 1 / 0.9);
  EXPECT_NEAR(0.6 * time_part, 0.4 * gain_part, 0.01);
}

TEST(Ratio, FollowsTheWeights) {
  RatioSearch search = some_search();
  const double balanced = ratio_of(search);
  search.gain_weight = 0.9;
  EXPECT_GT(ratio_of(search), balanced);
  search.gain_weight = 0.01;
  EXPECT_LT(ratio_of(search), balanced);
  search.gain_weight = 0;
  EXPECT_NEAR(ratio_of(search), 0.001, 1e-12);
  search.time_weight = 0;
  EXPECT_EQ(ratio_of(search), 0.1) << "of equal ones the largest";
}

TEST(Ratio, CountsTheTimeToCompressOnRequest) {
  RatioSearch search = some_search();
  const double without = ratio_of(search);
  search.compress_weight = 5;
  EXPECT_LT(ratio_of(search), without);
  search.rule = RatioRule::kKnee;
  const double knee = ratio_of(search);
  search.compress_weight = 0;
  EXPECT_LE(knee, ratio_of(search));
}

TEST(Ratio, HasAKneeFarthestFromTheLineBetweenTheExtremes) {
  RatioSearch search = some_search();
  search.rule = RatioRule::kKnee;
  const double knee = ratio_of(search);
  EXPECT_GT(knee, 0.001);
  EXPECT_LT(knee, 0.1);
  search.points = 4001;
  EXPECT_NEAR(std::log(ratio_of(search) / knee), 0, 0.02) << "a finer scan finds the same";
}

// Why a scan is enough: with one variable, no ratio is better in both objectives than another one.
TEST(Ratio, IsNeverDominated) {
  const RatioSearch search = some_search();
  std::vector<RatioSample> samples(search.samples.rbegin(), search.samples.rend());
  double time = 0;
  double loss = INFINITY;
  int not_dominated = 0;
  for (int i = 0; i <= 400; ++i) {  // from the least ratio to the largest
    SparseExchange exchange = search.exchange;
    exchange.ratio = 0.001 * std::pow(100, i / 400.0);
    const SparseCosts costs = sparse_costs(exchange);
    const double next_time = costs.of(cheapest(costs));
    const double next_loss = 1 / interpolate(samples, exchange.ratio).gain;
    not_dominated += next_time > time && next_loss < loss;
    time = next_time;
    loss = next_loss;
  }
  EXPECT_EQ(not_dominated, 401);
}

TEST(Ratio, IsTheSampleIfThereIsOne) {
  RatioSearch search = some_search();
  search.samples = {{0.02, 0.5, 0}};
  EXPECT_EQ(ratio_of(search), 0.02);
  search = some_search();
  search.points = 1;
  EXPECT_EQ(ratio_of(search), 0.1);
}

TEST(Ratio, WithoutExchangeIsTheLargest) {
  RatioSearch search = some_search();
  search.exchange.workers = 1;
  EXPECT_EQ(ratio_of(search), 0.1) << "nothing is to be gained by sending less";
}

TEST(Ratio, RefusesWhatIsNoMeasurement) {
  const auto refused = [](auto change) {
    RatioSearch search = some_search();
    change(search);
    const Result<RatioChoice> choice = choose_ratio(search);
    return !choice.ok() && choice.error().code == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](RatioSearch& s) { s.samples.clear(); }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.samples[0].ratio = 0; }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.samples[0].ratio = std::nan(""); }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.samples[0].ratio = 0.033; }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.samples[0].gain = 0; }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.samples[0].gain = std::nan(""); }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.samples[0].compress_s = -1; }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.points = 0; }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.exchange.workers = 0; }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.exchange.startup_s = -1; }));
  EXPECT_TRUE(refused([](RatioSearch& s) { s.time_weight = INFINITY; }));
}

TEST(GainTrigger, WaitsForALastingChange) {
  GainTrigger trigger;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(trigger.add(0.5)) << i;
  EXPECT_FALSE(trigger.add(0.7)) << "one step moves the mean by less than a tenth";
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(trigger.add(0.5));
  int steps = 1;
  while (!trigger.add(0.6)) ASSERT_LT(++steps, 10);
  EXPECT_EQ(steps, 3) << "the mean is 0.56 then: 0.54 after two";
  trigger.measured();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(trigger.add(0.6));
}

TEST(GainTrigger, LeavesOutWhatIsNoNumber) {
  GainTrigger trigger;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(trigger.add(i % 2 == 0 ? 0.5 : std::nan("")));
  EXPECT_FALSE(trigger.add(INFINITY));
}

TEST(GainTrigger, SeesGainsThatVanishOrAppear) {
  GainTrigger trigger;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(trigger.add(0));
  EXPECT_TRUE(trigger.add(0.1));
}

TEST(LinkTrigger, ComparesWithTheLastSearch) {
  LinkTrigger trigger;
  EXPECT_TRUE(trigger.update(1e-3, 1e-9)) << "the first time";
  EXPECT_FALSE(trigger.update(1e-3, 1e-9));
  EXPECT_FALSE(trigger.update(1.04e-3, 1e-9));
  EXPECT_TRUE(trigger.update(1.06e-3, 1e-9));
  EXPECT_FALSE(trigger.update(1.04e-3, 1e-9)) << "compared with the new one";
  EXPECT_TRUE(trigger.update(1.06e-3, 1.06e-9));
  EXPECT_FALSE(trigger.update(1.06e-3, 1.06e-9 * 1.05)) << "the bandwidth falls by less than a twentieth";
  LinkTrigger any(0);
  EXPECT_TRUE(any.update(1, 1));
  EXPECT_FALSE(any.update(1, 1));
  EXPECT_TRUE(any.update(1, 1.0000001));
}

}  // namespace
}  // namespace trestle
