// The Preserver: its expectation against an integral. tests/unit/cli/presets_test.cpp has the ratios of Table V.
#include "gradient/deft/preserver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "gradient/deft/simulate.h"
#include "unit/gradient/deft_systems.h"

namespace trestle {
namespace {

// Table V: four single updates end at 0.1922. The rate and the mean drift are those its row O_B implies; the noise
// vanishes beside the distance from the least loss.
PreserverModel table_v(MergedUpdate merged) {
  return {
      .loss = 0.2103, .least_loss = 0, .rate = 0.01, .drift = 0.4525, .deviation = 0.1, .batch = 256, .merged = merged};
}

// The mean of |x| over a normal distribution, by the trapezoidal rule.
double mean_of_distance(double m, double d) {
  constexpr int kSteps = 40'000;
  double sum = 0;
  for (int i = -kSteps; i <= kSteps; ++i) {
    const double z = 10.0 * i / kSteps;
    sum += std::abs(m + d * z) * std::exp(-z * z / 2) * 10.0 / kSteps;
  }
  return sum / std::sqrt(2 * std::numbers::pi);
}

TEST(Preserver, ExpectsWhatTheIntegralGives) {
  Rng rng(9);
  for (int round = 0; round < 50; ++round) {
    const PreserverModel model{.loss = 2 * rng.uniform(),
                               .least_loss = rng.uniform(),
                               .rate = rng.uniform(),
                               .drift = 2 * rng.uniform() - 0.5,
                               .deviation = 4 * rng.uniform(),
                               .batch = 1 + 10 * rng.uniform(),
                               .merged = round % 2 == 0 ? MergedUpdate::kSum : MergedUpdate::kMean};
    for (const uint32_t k : {1u, 2u, 5u}) {
      const bool sum = model.merged == MergedUpdate::kSum;
      const double drift = model.drift * (sum ? k : 1);
      const double d = model.rate * model.deviation / std::sqrt(model.batch) * std::sqrt(sum ? 1.0 * k : 1.0 / k);
      const double expected =
          model.least_loss + mean_of_distance(model.loss - model.least_loss - model.rate * drift, d);
      EXPECT_NEAR(expected_loss(model, model.loss, k), expected, 1e-6);
    }
  }
}

TEST(Preserver, ReboundsWithoutNoise) {
  const PreserverModel model{.loss = 1, .least_loss = 0.5, .rate = 1, .drift = 0.75};
  EXPECT_DOUBLE_EQ(expected_loss(model, 1, 1), 0.75);
  EXPECT_DOUBLE_EQ(expected_loss(model, 1.5, 1), 0.75);
}

TEST(Preserver, ReportsTheLastOfTenRetries) {
  // Far too much communication: even twice the knapsacks cannot update in each iteration.
  const DeftSystem system{equal_buckets(4, {100, 200, 3000}), one_link()};
  const PreserverReport report = expect_value(preserve(system, table_v(MergedUpdate::kMean)));
  EXPECT_EQ(report.retries, 10u);
  EXPECT_EQ(report.capacity_permille, 2000u);
  EXPECT_FALSE(report.last.accepted);
  EXPECT_EQ(report.batches, expect_value(deft_cycle(system, 2000)));
}

TEST(Preserver, AcceptsSingleUpdatesAtOnce) {
  const PreserverRatio ratio = compare_updates(table_v(MergedUpdate::kMean), std::vector<uint32_t>(20, 1));
  EXPECT_EQ(ratio.ratio, 1);
  EXPECT_TRUE(ratio.accepted);
}

TEST(Preserver, RefusesModelsThatAreNone) {
  const DeftSystem system{vgg19_buckets(), two_links()};
  PreserverModel model = table_v(MergedUpdate::kSum);
  model.batch = 0;
  EXPECT_FALSE(preserve(system, model).ok());
  model = table_v(MergedUpdate::kSum);
  model.deviation = -1;
  EXPECT_FALSE(preserve(system, model).ok());
  model.deviation = std::nan("");
  EXPECT_FALSE(preserve(system, model).ok());
}

}  // namespace
}  // namespace trestle
