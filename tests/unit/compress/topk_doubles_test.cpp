// Top-k of float64 vectors: the same promises as those of float32, with magnitudes that only a double tells apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "base/rng.h"
#include "compress/topk.h"
#include "support/plain_top_k.h"

namespace trestle {
namespace {

using Doubles = std::vector<double>;
using Function = SparseVectorOf<double> (*)(std::span<const double>, size_t);

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kMost = std::numeric_limits<double>::max();

Doubles random_vector(Rng& rng, size_t length) {
  Doubles vector(length);
  const uint64_t kinds = 1 + rng.below(5);
  for (double& value : vector) {
    switch (rng.below(kinds)) {
      case 0:
        value = rng.uniform() - 0.5;
        break;
      case 1:
        value = static_cast<double>(rng.below(5)) - 2;  // many ties, zeros of both signs
        break;
      case 2:
        value = 1 + std::ldexp(static_cast<double>(rng.below(8)), -50);  // equal as float32
        break;
      case 3:
        value = std::ldexp(rng.uniform() - 0.5, static_cast<int>(rng.below(1800)) - 1000);
        break;
      default:
        value = rng.below(4) == 0 ? kNan : rng.below(2) == 0 ? kInfinite : -kInfinite;
    }
  }
  return vector;
}

void expect_values(const SparseVectorOf<double>& sparse, const Doubles& vector) {
  ASSERT_EQ(sparse.values.size(), sparse.indices.size());
  for (size_t i = 0; i < sparse.indices.size(); ++i) {
    const double value = vector[sparse.indices[i]];
    EXPECT_TRUE(sparse.values[i] == value || (std::isnan(sparse.values[i]) && std::isnan(value)));
  }
  EXPECT_EQ(sparse.nans,
            static_cast<size_t>(std::count_if(vector.begin(), vector.end(), [](double v) { return std::isnan(v); })));
}

TEST(TopKOfDoubles, IsTheSortedOne) {
  Rng rng(11);
  for (int round = 0; round < 2000; ++round) {
    const Doubles vector = random_vector(rng, rng.below(200));
    const size_t k = rng.below(vector.size() + 2);
    const SparseVectorOf<double> sparse = top_k(vector, k);
    ASSERT_EQ(sparse.indices, reference::sorted_top_k(vector, k)) << round;
    expect_values(sparse, vector);
  }
}

// Long enough for a sample to find the threshold.
TEST(TopKOfDoubles, OfLongVectorsIsTheSortedOne) {
  constexpr size_t kLength = 50'001;
  constexpr size_t kStride = 48;  // about that of the sample
  Rng rng(12);
  std::vector<Doubles> vectors(5, Doubles(kLength));
  for (size_t i = 0; i < kLength; ++i) {
    vectors[0][i] = std::log(rng.uniform() + 1e-9) * (rng.below(2) == 0 ? 1 : -1);
    vectors[1][i] = static_cast<double>(rng.below(3)) - 1;
    vectors[2][i] = 1 + std::ldexp(rng.uniform(), -30);  // one exponent, and nearly one float32
    vectors[3][i] = i % kStride == kStride / 2 ? 1e300 : rng.uniform();
    vectors[4][i] = i < 500 ? kNan : i < 1000 ? kInfinite : rng.uniform();
  }
  for (size_t v = 0; v < vectors.size(); ++v) {
    for (const size_t k : {size_t{0}, size_t{1}, size_t{700}, size_t{5000}, size_t{30'000}, kLength}) {
      const SparseVectorOf<double> sparse = top_k(vectors[v], k);
      ASSERT_EQ(sparse.indices, reference::sorted_top_k(vectors[v], k)) << v << ", " << k;
      expect_values(sparse, vectors[v]);
    }
  }
}

TEST(TopKOfDoubles, OfNothingOneAndAll) {
  for (const Function function : std::initializer_list<Function>{top_k, ms_top_k}) {
    EXPECT_TRUE(function({}, 0).indices.empty());
    EXPECT_TRUE(function({}, 3).indices.empty());
    const Doubles one = {-4};
    EXPECT_TRUE(function(one, 0).indices.empty());
    EXPECT_EQ(function(one, 1).values, one);
    const Doubles vector = {3, 0, -1, 0, 7};
    EXPECT_EQ(function(vector, 5).values, vector);
    EXPECT_EQ(function(vector, 9).values, vector);
    EXPECT_EQ(function(Doubles(9, 0.0), 2).indices, (std::vector<uint32_t>{0, 1}));
    const Doubles nans(50, kNan);
    EXPECT_EQ(function(nans, 2).indices, (std::vector<uint32_t>{0, 1}));
    EXPECT_EQ(function(nans, 2).nans, 50u);
  }
}

TEST(MsTopKOfDoubles, IsTheAlgorithmWordByWord) {
  Rng rng(13);
  for (int round = 0; round < 1000; ++round) {
    const Doubles vector = random_vector(rng, 1 + rng.below(round % 100 == 0 ? 20'000 : 400));
    const size_t k = 1 + rng.below(vector.size());
    ASSERT_EQ(ms_top_k(vector, k).indices, reference::plain_ms_top_k(vector, k)) << round;
  }
}

// Their sum is infinite, so there is no mean.
TEST(MsTopKOfDoubles, OfTheLargestNumbersEndsAndKeepsTheLargest) {
  Doubles vector(100, kMost / 2);
  vector[7] = -kMost;
  vector[60] = kMost;
  EXPECT_EQ(ms_top_k(vector, 2).indices, (std::vector<uint32_t>{7, 60}));
  EXPECT_EQ(ms_top_k(vector, 4).indices, (std::vector<uint32_t>{0, 1, 7, 60}));
}

TEST(LayerwiseTopKOfDoubles, TakesFromEachLayer) {
  const Doubles vector = {1, 2, 3, 100, 200, 300, 400, 5};
  const SparseVectorOf<double> sparse = layerwise_top_k(vector, std::vector<size_t>{3, 0, 4, 1}, 0.5);
  EXPECT_EQ(sparse.indices, (std::vector<uint32_t>{1, 2, 5, 6, 7}));
  EXPECT_EQ(sparse.values, (Doubles{2, 3, 300, 400, 5}));
  EXPECT_EQ(square_norm(sparse.values), 4 + 9 + 90'000 + 160'000 + 25);
}

}  // namespace
}  // namespace trestle
