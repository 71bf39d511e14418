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

template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
template <class T>
constexpr T kInfinite = std::numeric_limits<T>::infinity();

template <class T>
std::vector<T> random_vector(Rng& rng, size_t length) {
  constexpr int kSmallest = sizeof(T) == 8 ? -1000 : -150;
  std::vector<T> vector(length);
  const uint64_t kinds = 1 + rng.below(5);
  for (T& value : vector) {
    switch (rng.below(kinds)) {
      case 0:
        value = static_cast<T>(rng.uniform() - 0.5);
        break;
      case 1:
        value = static_cast<T>(rng.below(5)) - 2;  // many ties, zeros of both signs
        break;
      case 2:
        value = static_cast<T>(1 + std::ldexp(static_cast<double>(rng.below(8)), -50));  // equal as float
        break;
      case 3:
        value = std::ldexp(static_cast<T>(rng.uniform() - 0.5),
                           kSmallest + static_cast<int>(rng.below(-2 * kSmallest - 20)));
        break;
      default:
        value = rng.below(4) == 0 ? kNan<T> : rng.below(2) == 0 ? kInfinite<T> : -kInfinite<T>;
    }
  }
  return vector;
}

template <class T>
void expect_values(const SparseVectorOf<T>& sparse, const std::vector<T>& vector) {
  ASSERT_EQ(sparse.values.size(), sparse.indices.size());
  for (size_t i = 0; i < sparse.indices.size(); ++i) {
    const T value = vector[sparse.indices[i]];
    EXPECT_TRUE(sparse.values[i] == value || (std::isnan(sparse.values[i]) && std::isnan(value)));
  }
  EXPECT_EQ(sparse.nans,
            static_cast<size_t>(std::count_if(vector.begin(), vector.end(), [](T v) { return std::isnan(v); })));
}

template <class T>
class TopK : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(TopK, Types);

TEST(TopKCount, IsRoundedUpAndClamped) {
  EXPECT_EQ(top_k_count(1.0 / 3, 6), 2u);
  EXPECT_EQ(top_k_count(0.1, 11), 2u);
  EXPECT_EQ(top_k_count(0.001, 5), 1u);
  EXPECT_EQ(top_k_count(0, 5), 1u);
  EXPECT_EQ(top_k_count(-1, 5), 1u);
  EXPECT_EQ(top_k_count(1, 5), 5u);
  EXPECT_EQ(top_k_count(7, 5), 5u);
  EXPECT_EQ(top_k_count(kInfinite<double>, 5), 5u);
  EXPECT_EQ(top_k_count(kNan<double>, 5), 1u);
  EXPECT_EQ(top_k_count(0.5, 0), 0u);
  EXPECT_EQ(top_k_count(0.001, 1), 1u);
}

TYPED_TEST(TopK, IsTheSortedOne) {
  Rng rng(1);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<TypeParam> vector = random_vector<TypeParam>(rng, rng.below(200));
    const size_t k = rng.below(vector.size() + 2);
    const SparseVectorOf<TypeParam> sparse = top_k(vector, k);
    ASSERT_EQ(sparse.indices, reference::sorted_top_k(vector, k)) << round;
    expect_values(sparse, vector);
  }
}

// Long enough for a sample to find the threshold: spread, with ties, with what the sample sees nothing of, and with
// more NaNs than elements to take.
TYPED_TEST(TopK, OfLongVectorsIsTheSortedOne) {
  constexpr size_t kLength = 100'003;
  constexpr size_t kStride = 64;  // of the sample
  Rng rng(5);
  std::vector<std::vector<TypeParam>> vectors(7, std::vector<TypeParam>(kLength));
  for (size_t i = 0; i < kLength; ++i) {
    vectors[0][i] = static_cast<TypeParam>(std::log(rng.uniform() + 1e-9) * (rng.below(2) == 0 ? 1 : -1));
    vectors[1][i] = static_cast<TypeParam>(rng.below(3)) - 1;
    vectors[2][i] =
        i % kStride == kStride / 2 ? 1e6 : static_cast<TypeParam>(rng.uniform());  // only these in the sample
    vectors[3][i] = i % kStride == kStride / 2 ? 0 : static_cast<TypeParam>(rng.uniform());
    vectors[4][i] = i < 500 ? kNan<TypeParam> : i < 1000 ? kInfinite<TypeParam> : static_cast<TypeParam>(rng.uniform());
    vectors[5][i] = static_cast<TypeParam>(i);
    vectors[6][i] = static_cast<TypeParam>(1 + std::ldexp(rng.uniform(), -30));  // one exponent, and nearly one float
  }
  for (size_t v = 0; v < vectors.size(); ++v) {
    for (const size_t k : {size_t{0}, size_t{1}, size_t{100}, size_t{700}, size_t{5000}, size_t{60'000}, kLength}) {
      const SparseVectorOf<TypeParam> sparse = top_k(vectors[v], k);
      ASSERT_EQ(sparse.indices, reference::sorted_top_k(vectors[v], k)) << v << ", " << k;
      expect_values(sparse, vectors[v]);
    }
  }
}

TYPED_TEST(TopK, GivesTiesToTheLowerIndex) {
  const std::vector<TypeParam> vector = {1, -2, 2, 0, -1, 2};
  EXPECT_EQ(top_k(vector, 2).indices, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(top_k(vector, 4).indices, (std::vector<uint32_t>{0, 1, 2, 5}));
  EXPECT_EQ(top_k(std::vector<TypeParam>(100, -3), 3).indices, (std::vector<uint32_t>{0, 1, 2}));
}

TYPED_TEST(TopK, CountsNansAndSendsThemFirst) {
  const std::vector<TypeParam> vector = {kInfinite<TypeParam>, 1, kNan<TypeParam>, 2, -kNan<TypeParam>};
  const SparseVectorOf<TypeParam> sparse = top_k(vector, 3);
  EXPECT_EQ(sparse.indices, (std::vector<uint32_t>{0, 2, 4}));
  EXPECT_EQ(sparse.nans, 2u);
  const std::vector<TypeParam> nans(50, kNan<TypeParam>);
  EXPECT_EQ(top_k(nans, 2).indices, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(ms_top_k(nans, 2).indices, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(ms_top_k(nans, 2).nans, 50u);
}

TYPED_TEST(TopK, OfNothingOneAndAll) {
  using Function = SparseVectorOf<TypeParam> (*)(std::span<const TypeParam>, size_t);
  for (const Function function : std::initializer_list<Function>{top_k, ms_top_k}) {
    EXPECT_TRUE(function({}, 0).indices.empty());
    EXPECT_TRUE(function({}, 3).indices.empty());
    const std::vector<TypeParam> one = {-4};
    EXPECT_TRUE(function(one, 0).indices.empty());
    EXPECT_EQ(function(one, 1).values, one);
    const std::vector<TypeParam> vector = {3, 0, -1, 0, 7};
    EXPECT_EQ(function(vector, 5).values, vector);
    EXPECT_EQ(function(vector, 9).values, vector);
    EXPECT_EQ(function(std::vector<TypeParam>(9, 0), 2).indices, (std::vector<uint32_t>{0, 1}));
  }
}

TYPED_TEST(TopK, ByThresholdsHasExactlyKAndKeepsTheLargest) {
  Rng rng(2);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<TypeParam> vector = random_vector<TypeParam>(rng, 1 + rng.below(300));
    const size_t k = 1 + rng.below(vector.size());
    const SparseVectorOf<TypeParam> sparse = ms_top_k(vector, k);
    ASSERT_EQ(sparse.indices.size(), k) << round;
    ASSERT_TRUE(std::is_sorted(sparse.indices.begin(), sparse.indices.end()));
    ASSERT_EQ(std::adjacent_find(sparse.indices.begin(), sparse.indices.end()), sparse.indices.end());
    expect_values(sparse, vector);
  }
}

TYPED_TEST(TopK, ByThresholdsIsTheAlgorithmWordByWord) {
  Rng rng(6);
  for (int round = 0; round < 1500; ++round) {
    const std::vector<TypeParam> vector = random_vector<TypeParam>(rng, 1 + rng.below(round % 100 == 0 ? 30'000 : 400));
    const size_t k = 1 + rng.below(vector.size());
    ASSERT_EQ(ms_top_k(vector, k).indices, reference::plain_ms_top_k(vector, k)) << round;
  }
}

// With 25 bisections the band holds a few elements only, where magnitudes are spread.
TYPED_TEST(TopK, ByThresholdsIsNearlyExactForSpreadMagnitudes) {
  Rng rng(3);
  std::vector<TypeParam> vector(20'000);
  for (TypeParam& value : vector)
    value = static_cast<TypeParam>(std::log(rng.uniform() + 1e-9) * (rng.below(2) == 0 ? 1 : -1));
  for (const double ratio : {0.001, 0.01, 0.1}) {
    const size_t k = top_k_count(ratio, vector.size());
    const double exact = square_norm(top_k(vector, k).values);
    EXPECT_GT(square_norm(ms_top_k(vector, k).values), (1 - 1e-6) * exact) << ratio;
  }
}

TYPED_TEST(TopK, ByThresholdsFillsFromTheBandInTheOrderOfIndices) {
  // Two values: no threshold separates the ones, so the first of them fill up.
  const std::vector<TypeParam> vector = {1, 1, 9, 1, 1, 9, 1};
  EXPECT_EQ(ms_top_k(vector, 2).indices, (std::vector<uint32_t>{2, 5}));
  EXPECT_EQ(ms_top_k(vector, 4).indices, (std::vector<uint32_t>{0, 1, 2, 5}));
}

TYPED_TEST(TopK, ByLayerTakesFromEachLayer) {
  const std::vector<TypeParam> vector = {1, 2, 3, 100, 200, 300, 400, 5};
  const SparseVectorOf<TypeParam> sparse = layerwise_top_k(vector, std::vector<size_t>{3, 0, 4, 1}, 0.5);
  EXPECT_EQ(sparse.indices, (std::vector<uint32_t>{1, 2, 5, 6, 7}));
  EXPECT_EQ(sparse.values, (std::vector<TypeParam>{2, 3, 300, 400, 5}));
}

// The sum of doubles is infinite, so there is no mean.
TYPED_TEST(TopK, ByThresholdsOfTheLargestNumbersEndsAndKeepsTheLargest) {
  constexpr TypeParam kMost = std::numeric_limits<TypeParam>::max();
  std::vector<TypeParam> vector(100, kMost / 2);
  vector[7] = -kMost;
  vector[60] = kMost;
  EXPECT_EQ(ms_top_k(vector, 2).indices, (std::vector<uint32_t>{7, 60}));
  EXPECT_EQ(ms_top_k(vector, 4).indices, (std::vector<uint32_t>{0, 1, 7, 60}));
}

TEST(CompressionGain, IsTheShareOfTheSquares) {
  EXPECT_EQ(compression_gain(9, 25), 0.36);
  EXPECT_EQ(compression_gain(0, 0), 1) << "nothing is lost of nothing";
}

}  // namespace
}  // namespace topk_test
}  // namespace trestle
