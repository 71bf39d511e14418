// The loops of sparse gradients against plain ones: every set of loops, length and alignment, with numbers of all
// kinds.
#include "kernels/sparse.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "unit/kernels/displaced.h"
#include "unit/kernels/kernel_loop_sets.h"

namespace trestle {
namespace {

constexpr std::array<size_t, 16> kLengths = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 255, 1000, 4099};
constexpr size_t kMost = 4099;
constexpr size_t kOffsets = 4;  // of the first element behind a boundary, in elements
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

std::vector<float> numbers(Rng& rng, size_t length) {
  constexpr std::array<float, 8> kSpecial = {0.0f, -0.0f, kNan, -kNan, kInfinite, -kInfinite, 3.4e38f, -1e-45f};
  std::vector<float> values(length);
  const uint64_t special = rng.below(3);  // none, some, many
  for (float& value : values) {
    value = std::ldexp(static_cast<float>(rng.uniform() - 0.5), static_cast<int>(rng.below(9)) - 4);
    if (special != 0 && rng.below(special == 1 ? 20 : 2) == 0) value = kSpecial[rng.below(kSpecial.size())];
  }
  return values;
}

// Calls f(loops, values, length) for all sets of loops, lengths and offsets.
template <class F>
void for_all(F f) {
  for (const SparseLoopSet& set : sparse_loop_sets()) {
    Rng rng(1);
    for (const size_t length : kLengths) {
      for (size_t offset = 0; offset < kOffsets; ++offset) {
        SCOPED_TRACE(testing::Message() << set.name << ", " << length << " elements from " << offset);
        const std::vector<float> values = numbers(rng, kMost + kOffsets);
        f(set.loops, values.data() + offset, length);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

bool reaches(float value, float threshold) {
  return !(std::abs(value) < threshold);
}

const std::array<float, 6> kThresholds = {0, 1e-45f, 0.25f, 1.5f, 3.4e38f, kInfinite};

TEST(SparseKernels, CountWhatReachesAThreshold) {
  for_all([](const kernels::SparseLoops& loops, const float* values, size_t length) {
    for (const float threshold : kThresholds) {
      size_t expected = 0;
      for (size_t i = 0; i < length; ++i) expected += reaches(values[i], threshold);
      ASSERT_EQ(loops.count_reaching(values, length, threshold), expected) << threshold;
    }
  });
}

TEST(SparseKernels, SelectWhatReachesAThreshold) {
  for_all([](const kernels::SparseLoops& loops, const float* values, size_t length) {
    constexpr uint32_t kGuard = 0xa5a5a5a5;
    for (const float threshold : kThresholds) {
      const uint32_t first = 0xffff'ffff - static_cast<uint32_t>(length);
      std::vector<uint32_t> indices(length + kSelectSlack + 1, kGuard);
      std::vector<float> selected(length + kSelectSlack + 1, std::bit_cast<float>(kGuard));
      const size_t count = loops.select_reaching(indices.data(), selected.data(), values, length, threshold, first);
      size_t at = 0;
      for (size_t i = 0; i < length; ++i) {
        if (!reaches(values[i], threshold)) continue;
        ASSERT_LT(at, count);
        ASSERT_EQ(indices[at], first + i);
        ASSERT_EQ(std::memcmp(&selected[at], &values[i], sizeof(float)), 0) << i;
        ++at;
      }
      ASSERT_EQ(at, count);
      EXPECT_EQ(indices.back(), kGuard);
      EXPECT_EQ(std::bit_cast<uint32_t>(selected.back()), kGuard);
    }
  });
}

TEST(SparseKernels, FindFiniteElements) {
  for_all([](const kernels::SparseLoops& loops, const float* values, size_t length) {
    kernels::FiniteElements expected;
    for (size_t i = 0; i < length; ++i) {
      if (!std::isfinite(values[i])) continue;
      ++expected.count;
      expected.largest = std::max(expected.largest, std::abs(values[i]));
    }
    const kernels::FiniteElements finite = loops.find_finite(values, length);
    ASSERT_EQ(finite.count, expected.count);
    ASSERT_EQ(finite.largest, expected.largest);
  });
}

TEST(SparseKernels, AddUpInSixteenParts) {
  for_all([](const kernels::SparseLoops& loops, const float* values, size_t length) {
    std::array<double, 16> magnitudes, squares;
    for (size_t j = 0; j < 16; ++j) magnitudes[j] = squares[j] = 0.1 * static_cast<double>(j);
    std::array<double, 16> expected_magnitudes = magnitudes, expected_squares = squares;
    for (size_t i = 0; i < length; ++i) {
      if (std::isfinite(values[i])) expected_magnitudes[i % 16] += std::abs(values[i]);
      expected_squares[i % 16] += double{values[i]} * values[i];
    }
    loops.add_magnitudes(magnitudes.data(), values, length);
    loops.add_squares(squares.data(), values, length);
    for (size_t j = 0; j < 16; ++j) {
      ASSERT_EQ(magnitudes[j], expected_magnitudes[j]) << j;
      ASSERT_TRUE(squares[j] == expected_squares[j] || (std::isnan(squares[j]) && std::isnan(expected_squares[j])));
    }
  });
}

TEST(SparseKernels, AddAndCountNans) {
  for_all([](const kernels::SparseLoops& loops, const float* values, size_t length) {
    std::vector<float> sums(length + 1, 0.3f);
    size_t nans = 0;
    for (size_t i = 0; i < length; ++i) nans += std::isnan(values[i]);
    Displaced bytes(values, length);
    ASSERT_EQ(loops.add(sums.data(), bytes.data(), length), nans);
    for (size_t i = 0; i < length; ++i) {
      const float expected = 0.3f + values[i];
      ASSERT_TRUE(sums[i] == expected || (std::isnan(sums[i]) && std::isnan(expected))) << i;
    }
    EXPECT_EQ(sums.back(), 0.3f);
  });
}

// ---- what is made of the loops

TEST(SparseKernels, SumPartsAsATree) {
  std::vector<float> values(19);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + std::ldexp(1.0f, -static_cast<int>(i));
  std::array<double, 16> parts{};
  for (size_t i = 0; i < values.size(); ++i) parts[i % 16] += double{values[i]} * values[i];
  for (size_t width = 8; width > 0; width /= 2) {
    for (size_t j = 0; j < width; ++j) parts[j] += parts[j + width];
  }
  EXPECT_EQ(square_sum(values.data(), values.size()), parts[0]);
  EXPECT_EQ(square_sum(values.data(), 0), 0);
}

TEST(SparseKernels, SummarizeOverManyBlocks) {
  for (const size_t length : {size_t{0}, size_t{5}, size_t{4096}, size_t{20'003}}) {
    std::vector<float> values(length);
    for (size_t i = 0; i < length; ++i) values[i] = static_cast<float>(i % 7) - 3;
    double sum = 0;
    for (const float value : values) sum += std::abs(value);
    if (length > 4) values[4] = kNan, sum -= 1;
    if (length > 5000) values[5000] = -kInfinite, sum -= std::abs(static_cast<float>(5000 % 7) - 3);
    const MagnitudeSummary<float> summary = summarize_magnitudes(values.data(), length);
    EXPECT_EQ(summary.finite, length - (length > 4) - (length > 5000));
    EXPECT_EQ(summary.largest, length > 0 ? 3 : 0);
    EXPECT_EQ(summary.sum, sum);
  }
}

TEST(SparseKernels, Accumulate) {
  constexpr size_t kLength = 10'001;
  std::vector<float> sums(kLength), values(kLength);
  double squares = 0;
  for (size_t i = 0; i < kLength; ++i) {
    sums[i] = static_cast<float>(i % 5);
    values[i] = static_cast<float>(i % 3) - 4;
    squares += double{sums[i] + values[i]} * (sums[i] + values[i]);
  }
  const std::vector<float> before = sums;
  const Accumulated result = accumulate(sums.data(), Displaced(values.data(), kLength).data(), kLength);
  for (size_t i = 0; i < kLength; ++i) ASSERT_EQ(sums[i], before[i] + values[i]);
  EXPECT_EQ(result.square_sum, squares);
  EXPECT_EQ(result.nans, 0u);
  values[9000] = values[3] = kNan;
  EXPECT_EQ(accumulate(sums.data(), Displaced(values.data(), kLength).data(), kLength).nans, 2u);
}

TEST(SparseKernels, GoToIndices) {
  std::vector<float> values = {0, 10, 20, 30, 40};
  const std::vector<uint32_t> indices = {1, 4};
  std::vector<float> taken(2);
  gather(taken.data(), values.data(), indices.data(), 2);
  EXPECT_EQ(taken, (std::vector<float>{10, 40}));
  Displaced sums(values.data(), values.size());
  scatter_add(sums.data(), indices.data(), taken.data(), 2);
  std::memcpy(values.data(), sums.data(), values.size() * sizeof(float));
  EXPECT_EQ(values, (std::vector<float>{0, 20, 20, 30, 80}));
  Displaced bytes(values.data(), values.size());
  scatter(bytes.data(), indices.data(), taken.data(), 2);
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  EXPECT_EQ(values, (std::vector<float>{0, 10, 20, 30, 40}));
  clear_at(values.data(), indices.data(), 2);
  EXPECT_EQ(values, (std::vector<float>{0, 0, 20, 30, 0}));
}

}  // namespace
}  // namespace trestle
