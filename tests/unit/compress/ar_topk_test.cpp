// AR-Topk over several workers in one process: the worked case, roots, and that nothing is lost.
#include "compress/ar_topk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "unit/compress/flex_vectors.h"

namespace trestle {
namespace {

std::vector<std::vector<float>> random_gradients(Rng& rng, size_t workers, size_t elements) {
  std::vector<std::vector<float>> gradients(workers, std::vector<float>(elements));
  for (std::vector<float>& gradient : gradients) {
    for (float& value : gradient) value = static_cast<float>(rng.uniform() - 0.5);
  }
  return gradients;
}

std::vector<float> copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

TEST(ArTopk, IsTheWorkedCase) {
  std::vector<ArTopkWorker> workers(2, ArTopkWorker(6));
  std::array<double, 6> weights = {};
  uint64_t number = 0;
  for (const ArTopkVectorStep& expected : ar_topk_vector()) {
    std::vector<ArTopkWorker> under_var = workers;
    EXPECT_EQ(ar_topk_step(under_var, expected.gradients, 1.0 / 3, RootRule::kVar, 1).norms, expected.norms);
    const ArTopkStep step = ar_topk_step(workers, expected.gradients, 1.0 / 3, RootRule::kStar, ++number);
    EXPECT_EQ(step.root, expected.root);
    EXPECT_EQ(step.indices, expected.indices);
    EXPECT_EQ(step.values, expected.values);
    for (size_t r = 0; r < 2; ++r) EXPECT_EQ(copy(workers[r].residual()), expected.residuals[r]);
    EXPECT_NEAR(step.mean_gain(), expected.gain_mean, 1e-9);
    EXPECT_NEAR(step.gains[step.root], expected.gain_root, 1e-9);
    EXPECT_TRUE(step.norms.empty()) << "STAR needs no norms";
    for (size_t i = 0; i < step.indices.size(); ++i) weights[step.indices[i]] -= 0.1 * double{step.values[i]};
    for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected.weights[i], 1e-12);
  }
}

// Bit by bit, for every worker and step, for one worker and for a number that is no power of two.
TEST(ArTopk, ResidualAndSentAreTheGradient) {
  Rng rng(1);
  for (const size_t count : {1u, 2u, 3u, 5u, 8u}) {
    for (const RootRule rule : {RootRule::kStar, RootRule::kVar}) {
      const size_t elements = 1 + rng.below(60);
      const double ratio = rng.below(4) == 0 ? 1 : rng.uniform();
      std::vector<ArTopkWorker> workers(count, ArTopkWorker(elements));
      for (uint64_t number = 1; number <= 20; ++number) {
        const auto gradients = random_gradients(rng, count, elements);
        std::vector<std::vector<float>> wholes;
        for (size_t r = 0; r < count; ++r) {
          ArTopkWorker same = workers[r];
          wholes.push_back(copy(same.accumulate(gradients[r])));
        }
        const ArTopkStep step = ar_topk_step(workers, gradients, ratio, rule, number);
        ASSERT_EQ(step.indices.size(), top_k_count(ratio, elements));
        std::vector<float> sums(step.indices.size(), 0.0f);
        for (size_t r = 0; r < count; ++r) {
          std::vector<float> rebuilt = copy(workers[r].residual());
          for (size_t i = 0; i < step.indices.size(); ++i) {
            EXPECT_EQ(rebuilt[step.indices[i]], 0.0f);
            rebuilt[step.indices[i]] += wholes[r][step.indices[i]];
            sums[i] += wholes[r][step.indices[i]];
          }
          EXPECT_EQ(std::memcmp(rebuilt.data(), wholes[r].data(), elements * sizeof(float)), 0) << r;
        }
        for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(step.values[i], sums[i] / static_cast<float>(count));
      }
    }
  }
}

TEST(ArTopk, WithAllElementsIsThePlainMean) {
  Rng rng(2);
  std::vector<ArTopkWorker> workers(3, ArTopkWorker(10));
  const auto gradients = random_gradients(rng, 3, 10);
  const ArTopkStep step = ar_topk_step(workers, gradients, 1, RootRule::kStar, 1);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(step.values[i], (gradients[0][i] + gradients[1][i] + gradients[2][i]) / 3);
  }
  EXPECT_EQ(step.mean_gain(), 1);
  for (const ArTopkWorker& worker : workers) EXPECT_EQ(copy(worker.residual()), std::vector<float>(10, 0.0f));
}

TEST(ArTopk, TakesRootsInTurnUnderStar) {
  EXPECT_EQ(star_root(1, 3), 1u);
  EXPECT_EQ(star_root(2, 3), 2u);
  EXPECT_EQ(star_root(3, 3), 0u);
  EXPECT_EQ(star_root(7, 1), 0u);
}

TEST(ArTopk, TakesTheLargestNormUnderVar) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(var_root(std::vector<double>{1, 3, 3, 2}), 1u) << "ties go to the lower rank";
  EXPECT_EQ(var_root(std::vector<double>{0, 0}), 0u);
  EXPECT_EQ(var_root(std::vector<double>{1, nan, nan, 5}), 1u);
  EXPECT_EQ(var_root(std::vector<double>{nan, 5}), 0u);
}

TEST(ArTopk, SendsOfOneElementAndOfZeros) {
  std::vector<ArTopkWorker> workers(2, ArTopkWorker(1));
  const std::vector<std::vector<float>> zeros(2, std::vector<float>(1, 0.0f));
  const ArTopkStep step = ar_topk_step(workers, zeros, 0.001, RootRule::kVar, 1);
  EXPECT_EQ(step.indices, std::vector<uint32_t>{0});
  EXPECT_EQ(step.mean_gain(), 1) << "nothing is lost of nothing";
  std::vector<ArTopkWorker> empty(2, ArTopkWorker(0));
  EXPECT_TRUE(ar_topk_step(empty, std::vector<std::vector<float>>(2), 0.5, RootRule::kStar, 1).indices.empty());
}

TEST(ArTopk, SendsANanAndCountsIt) {
  std::vector<ArTopkWorker> workers(2, ArTopkWorker(4));
  std::vector<std::vector<float>> gradients(2, std::vector<float>(4, 1.0f));
  gradients[1][2] = std::numeric_limits<float>::quiet_NaN();
  for (const RootRule rule : {RootRule::kStar, RootRule::kVar}) {
    std::vector<ArTopkWorker> fresh = workers;
    const ArTopkStep step = ar_topk_step(fresh, gradients, 0.25, rule, 1);
    EXPECT_EQ(step.root, 1u);
    EXPECT_EQ(step.nans, 1u);
    EXPECT_TRUE(std::isnan(step.values[0]));
    EXPECT_FALSE(std::isnan(fresh[1].residual()[2])) << "it is gone from the residual";
  }
}

TEST(ArTopk, ContinuesFromACheckpoint) {
  Rng rng(3);
  std::vector<ArTopkWorker> workers(2, ArTopkWorker(8));
  ar_topk_step(workers, random_gradients(rng, 2, 8), 0.3, RootRule::kStar, 1);
  std::vector<ArTopkWorker> restored(2, ArTopkWorker(8));
  for (size_t r = 0; r < 2; ++r) restored[r].restore(workers[r].residual());
  const auto gradients = random_gradients(rng, 2, 8);
  const ArTopkStep a = ar_topk_step(workers, gradients, 0.3, RootRule::kStar, 2);
  const ArTopkStep b = ar_topk_step(restored, gradients, 0.3, RootRule::kStar, 2);
  EXPECT_EQ(a.indices, b.indices);
  EXPECT_EQ(a.values, b.values);
}

}  // namespace
}  // namespace trestle
