// Top-k, exact and by thresholds, with ties, NaNs and the edges of k.
#include "compress/topk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "support/plain_top_k.h"

namespace trestle {
namespace topk_test {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinite = std::numeric_limits<float>::infinity();

std::vector<float> random_vector(Rng& rng, size_t length) {
  std::vector<float> vector(length);
  const uint64_t kinds = 1 + rng.below(4);
  for (float& value : vector) {
    switch (rng.below(kinds)) {
      case 0:
        value = static_cast<float>(rng.uniform() - 0.5);
        break;
      case 1:
        value = static_cast<float>(rng.below(5)) - 2;  // many ties, zeros of both signs
        break;
      case 2:
        value = std::ldexp(static_cast<float>(rng.uniform() - 0.5), static_cast<int>(rng.below(280)) - 150);
        break;
      default:
        value = rng.below(4) == 0 ? kNan : rng.below(2) == 0 ? kInfinite : -kInfinite;
    }
  }
  return vector;
}

void expect_values(const SparseVector& sparse, const std::vector<float>& vector) {
  ASSERT_EQ(sparse.values.size(), sparse.indices.size());
  for (size_t i = 0; i < sparse.indices.size(); ++i) {
    const float value = vector[sparse.indices[i]];
    EXPECT_TRUE(sparse.values[i] == value || (std::isnan(sparse.values[i]) && std::isnan(value)));
  }
  EXPECT_EQ(sparse.nans,
            static_cast<size_t>(std::count_if(vector.begin(), vector.end(), [](float v) { return std::isnan(v); })));
}

TEST(TopKCount, IsRoundedUpAndClamped) {
  EXPECT_EQ(top_k_count(1.0 / 3, 6), 2u);
  EXPECT_EQ(top_k_count(0.1, 11), 2u);
  EXPECT_EQ(top_k_count(0.001, 5), 1u);
  EXPECT_EQ(top_k_count(0, 5), 1u);
  EXPECT_EQ(top_k_count(-1, 5), 1u);
  EXPECT_EQ(top_k_count(1, 5), 5u);
  EXPECT_EQ(top_k_count(7, 5), 5u);
  EXPECT_EQ(top_k_count(kInfinite, 5), 5u);
  EXPECT_EQ(top_k_count(kNan, 5), 1u);
  EXPECT_EQ(top_k_count(0.5, 0), 0u);
  EXPECT_EQ(top_k_count(0.001, 1), 1u);
}

TEST(TopK, IsTheSortedOne) {
  Rng rng(1);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<float> vector = random_vector(rng, rng.below(200));
    const size_t k = rng.below(vector.size() + 2);
    const SparseVector sparse = top_k(vector, k);
    ASSERT_EQ(sparse.indices, reference::sorted_top_k(vector, k)) << round;
    expect_values(sparse, vector);
  }
}

// Long enough for a sample to find the threshold: spread, with ties, with what the sample sees nothing of, and with
// more NaNs than elements to take.
TEST(TopK, OfLongVectorsIsTheSortedOne) {
  constexpr size_t kLength = 100'003;
  constexpr size_t kStride = 64;  // of the sample
  Rng rng(5);
  std::vector<std::vector<float>> vectors(6, std::vector<float>(kLength));
  for (size_t i = 0; i < kLength; ++i) {
    vectors[0][i] = static_cast<float>(std::log(rng.uniform() + 1e-9) * (rng.below(2) == 0 ? 1 : -1));
    vectors[1][i] = static_cast<float>(rng.below(3)) - 1;
    vectors[2][i] = i % kStride == kStride / 2 ? 1e6f : static_cast<float>(rng.uniform());  // only these in the sample
    vectors[3][i] = i % kStride == kStride / 2 ? 0 : static_cast<float>(rng.uniform());
    vectors[4][i] = i < 500 ? kNan : i < 1000 ? kInfinite : static_cast<float>(rng.uniform());
    vectors[5][i] = static_cast<float>(i);
  }
  for (size_t v = 0; v < vectors.size(); ++v) {
    for (const size_t k : {size_t{0}, size_t{1}, size_t{100}, size_t{700}, size_t{5000}, size_t{60'000}, kLength}) {
      const SparseVector sparse = top_k(vectors[v], k);
      ASSERT_EQ(sparse.indices, reference::sorted_top_k(vectors[v], k)) << v << ", " << k;
      expect_values(sparse, vectors[v]);
    }
  }
}

TEST(TopK, GivesTiesToTheLowerIndex) {
  const std::vector<float> vector = {1, -2, 2, 0, -1, 2};
  EXPECT_EQ(top_k(vector, 2).indices, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(top_k(vector, 4).indices, (std::vector<uint32_t>{0, 1, 2, 5}));
  EXPECT_EQ(top_k(std::vector<float>(100, -3.0f), 3).indices, (std::vector<uint32_t>{0, 1, 2}));
}

TEST(TopK, CountsNansAndSendsThemFirst) {
  const std::vector<float> vector = {kInfinite, 1, kNan, 2, -kNan};
  const SparseVector sparse = top_k(vector, 3);
  EXPECT_EQ(sparse.indices, (std::vector<uint32_t>{0, 2, 4}));
  EXPECT_EQ(sparse.nans, 2u);
  const std::vector<float> nans(50, kNan);
  EXPECT_EQ(top_k(nans, 2).indices, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(ms_top_k(nans, 2).indices, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(ms_top_k(nans, 2).nans, 50u);
}

TEST(TopK, OfNothingOneAndAll) {
  using Function = SparseVector (*)(std::span<const float>, size_t);
  for (const Function function : std::initializer_list<Function>{top_k, ms_top_k}) {
    EXPECT_TRUE(function({}, 0).indices.empty());
    EXPECT_TRUE(function({}, 3).indices.empty());
    const std::vector<float> one = {-4};
    EXPECT_TRUE(function(one, 0).indices.empty());
    EXPECT_EQ(function(one, 1).values, one);
    const std::vector<float> vector = {3, 0, -1, 0, 7};
    EXPECT_EQ(function(vector, 5).values, vector);
    EXPECT_EQ(function(vector, 9).values, vector);
    EXPECT_EQ(function(std::vector<float>(9, 0.0f), 2).indices, (std::vector<uint32_t>{0, 1}));
  }
}

TEST(MsTopK, HasExactlyKAndKeepsTheLargest) {
  Rng rng(2);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<float> vector = random_vector(rng, 1 + rng.below(300));
    const size_t k = 1 + rng.below(vector.size());
    const SparseVector sparse = ms_top_k(vector, k);
    ASSERT_EQ(sparse.indices.size(), k) << round;
    ASSERT_TRUE(std::is_sorted(sparse.indices.begin(), sparse.indices.end()));
    ASSERT_EQ(std::adjacent_find(sparse.indices.begin(), sparse.indices.end()), sparse.indices.end());
    expect_values(sparse, vector);
  }
}

TEST(MsTopK, IsTheAlgorithmWordByWord) {
  Rng rng(6);
  for (int round = 0; round < 1500; ++round) {
    const std::vector<float> vector = random_vector(rng, 1 + rng.below(round % 100 == 0 ? 30'000 : 400));
    const size_t k = 1 + rng.below(vector.size());
    ASSERT_EQ(ms_top_k(vector, k).indices, reference::plain_ms_top_k(vector, k)) << round;
  }
}

// With 25 bisections the band holds a few elements only, where magnitudes are spread.
TEST(MsTopK, IsNearlyExactForSpreadMagnitudes) {
  Rng rng(3);
  std::vector<float> vector(20'000);
  for (float& value : vector) value = static_cast<float>(std::log(rng.uniform() + 1e-9) * (rng.below(2) == 0 ? 1 : -1));
  for (const double ratio : {0.001, 0.01, 0.1}) {
    const size_t k = top_k_count(ratio, vector.size());
    const double exact = square_norm(top_k(vector, k).values);
    EXPECT_GT(square_norm(ms_top_k(vector, k).values), (1 - 1e-6) * exact) << ratio;
  }
}

TEST(MsTopK, FillsFromTheBandInTheOrderOfIndices) {
  // Two values: no threshold separates the ones, so the first of them fill up.
  const std::vector<float> vector = {1, 1, 9, 1, 1, 9, 1};
  EXPECT_EQ(ms_top_k(vector, 2).indices, (std::vector<uint32_t>{2, 5}));
  EXPECT_EQ(ms_top_k(vector, 4).indices, (std::vector<uint32_t>{0, 1, 2, 5}));
}

TEST(LayerwiseTopK, TakesFromEachLayer) {
  const std::vector<float> vector = {1, 2, 3, 100, 200, 300, 400, 5};
  const SparseVector sparse = layerwise_top_k(vector, std::vector<size_t>{3, 0, 4, 1}, 0.5);
  EXPECT_EQ(sparse.indices, (std::vector<uint32_t>{1, 2, 5, 6, 7}));
  EXPECT_EQ(sparse.values, (std::vector<float>{2, 3, 300, 400, 5}));
}

TEST(CompressionGain, IsTheShareOfTheSquares) {
  EXPECT_EQ(compression_gain(9, 25), 0.36);
  EXPECT_EQ(compression_gain(0, 0), 1) << "nothing is lost of nothing";
}

}  // namespace
}  // namespace topk_test
}  // namespace trestle
