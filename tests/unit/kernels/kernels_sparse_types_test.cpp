// The loops of sparse gradients of float64, and those that widen float16 and bfloat16, against plain ones: every set of
// loops, length and alignment, with numbers of all kinds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/small_float.h"
#include "kernels/sparse.h"
#include "unit/kernels/displaced.h"
#include "unit/kernels/kernel_loop_sets.h"

namespace trestle {
namespace kernels_sparse_types_test {
namespace {

using DoubleLoops = kernels::SparseLoopsOf<double>;

constexpr std::array<size_t, 14> kLengths = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 255, 1001};
constexpr size_t kMost = 1001;
constexpr size_t kOffsets = 4;  // of the first element behind a boundary, in elements
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<double>::max();

std::vector<double> numbers(Rng& rng, size_t length) {
  constexpr std::array<double, 8> kSpecial = {0.0, -0.0, kNan, -kNan, kInfinite, -kInfinite, kLargest, -5e-324};
  std::vector<double> values(length);
  const uint64_t special = rng.below(3);  // none, some, many
  for (double& value : values) {
    value = std::ldexp(rng.uniform() - 0.5, static_cast<int>(rng.below(9)) - 4);
    if (special != 0 && rng.below(special == 1 ? 20 : 2) == 0) value = kSpecial[rng.below(kSpecial.size())];
  }
  return values;
}

// Calls f(loops, values, length) for all sets of loops, lengths and offsets.
template <class F>
void for_all(F f) {
  for (const SparseLoopSet& set : sparse_loop_sets()) {
    Rng rng(2);
    for (const size_t length : kLengths) {
      for (size_t offset = 0; offset < kOffsets; ++offset) {
        SCOPED_TRACE(testing::Message() << set.name << ", " << length << " elements from " << offset);
        const std::vector<double> values = numbers(rng, kMost + kOffsets);
        f(set.loops.of_doubles, values.data() + offset, length);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

bool reaches(double value, double threshold) {
  return !(std::abs(value) < threshold);
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

TEST(SparseDoubleKernels, CountAndSelectWhatReachesAThreshold) {
  for_all([](const DoubleLoops& loops, const double* values, size_t length) {
    constexpr uint32_t kGuard = 0xa5a5a5a5;
    for (const double threshold : {0.0, 5e-324, 0.25, 0.25 + 1e-12, 1.5, kLargest, kInfinite}) {
      const uint32_t first = 0xffff'ffff - static_cast<uint32_t>(length);
      std::vector<uint32_t> indices(length + kSelectSlack + 1, kGuard);
      std::vector<double> selected(length + kSelectSlack + 1, 77);
      const size_t count = loops.select_reaching(indices.data(), selected.data(), values, length, threshold, first);
      ASSERT_EQ(loops.count_reaching(values, length, threshold), count);
      size_t at = 0;
      for (size_t i = 0; i < length; ++i) {
        if (!reaches(values[i], threshold)) continue;
        ASSERT_LT(at, count);
        ASSERT_EQ(indices[at], first + i);
        ASSERT_EQ(std::memcmp(&selected[at], &values[i], sizeof(double)), 0) << i;
        ++at;
      }
      ASSERT_EQ(at, count);
      EXPECT_EQ(indices.back(), kGuard);
      EXPECT_EQ(selected.back(), 77);
    }
  });
}

// Squares round, and are added afterwards: no instruction set may do both at once.
TEST(SparseDoubleKernels, AddUpInSixteenParts) {
  for_all([](const DoubleLoops& loops, const double* values, size_t length) {
    std::array<double, 16> magnitudes, squares;
    for (size_t j = 0; j < 16; ++j) magnitudes[j] = squares[j] = 0.1 * static_cast<double>(j);
    std::array<double, 16> expected_magnitudes = magnitudes, expected_squares = squares;
    kernels::FiniteElementsOf<double> expected;
    for (size_t i = 0; i < length; ++i) {
      volatile double square = values[i] * values[i];
      expected_squares[i % 16] += square;
      if (!std::isfinite(values[i])) continue;
      expected_magnitudes[i % 16] += std::abs(values[i]);
      ++expected.count;
      expected.largest = std::max(expected.largest, std::abs(values[i]));
    }
    loops.add_magnitudes(magnitudes.data(), values, length);
    loops.add_squares(squares.data(), values, length);
    for (size_t j = 0; j < 16; ++j) {
      ASSERT_EQ(magnitudes[j], expected_magnitudes[j]) << j;
      ASSERT_TRUE(same(squares[j], expected_squares[j])) << j;
    }
    const kernels::FiniteElementsOf<double> finite = loops.find_finite(values, length);
    ASSERT_EQ(finite.count, expected.count);
    ASSERT_EQ(finite.largest, expected.largest);
  });
}

TEST(SparseDoubleKernels, AddAndCountNans) {
  for_all([](const DoubleLoops& loops, const double* values, size_t length) {
    std::vector<double> sums(length + 1, 0.3);
    size_t nans = 0;
    for (size_t i = 0; i < length; ++i) nans += std::isnan(values[i]);
    Displaced bytes(values, length);
    ASSERT_EQ(loops.add(sums.data(), bytes.data(), length), nans);
    for (size_t i = 0; i < length; ++i) ASSERT_TRUE(same(sums[i], 0.3 + values[i])) << i;
    EXPECT_EQ(sums.back(), 0.3);
  });
}

// ---- 16-bit elements

// All bit patterns, in an order that puts each at every place of a vector; from every byte.
TEST(SparseWideningKernels, AddEveryNumberAsFloat32) {
  constexpr size_t kPatterns = size_t{1} << 16;
  for (const SparseLoopSet& set : sparse_loop_sets()) {
    for (const bool half : {true, false}) {
      const auto add = half ? set.loops.add_float16 : set.loops.add_bfloat16;
      for (size_t offset = 0; offset < 3; ++offset) {
        SCOPED_TRACE(testing::Message() << set.name << (half ? ", float16" : ", bfloat16") << " from byte " << offset);
        std::vector<std::byte> bytes(2 * kPatterns + offset);
        std::vector<float> sums(kPatterns + 1, 0.75f), expected(kPatterns + 1, 0.75f);
        size_t nans = 0;
        for (size_t i = 0; i < kPatterns; ++i) {
          const auto pattern = static_cast<uint16_t>(i * 4099 + offset);
          std::memcpy(bytes.data() + offset + 2 * i, &pattern, 2);
          const float value = half ? half_to_float(pattern) : bfloat16_to_float(pattern);
          nans += std::isnan(value);
          expected[i] += value;
        }
        ASSERT_EQ(add(sums.data(), bytes.data() + offset, kPatterns), nans);
        for (size_t i = 0; i <= kPatterns; ++i) ASSERT_TRUE(same(sums[i], expected[i])) << i;
      }
    }
  }
}

TEST(SparseWideningKernels, OfEveryLength) {
  for (const SparseLoopSet& set : sparse_loop_sets()) {
    for (const size_t length : kLengths) {
      SCOPED_TRACE(testing::Message() << set.name << ", " << length);
      std::vector<uint16_t> halves(length, float_to_half(1.5f)), bfloats(length, float_to_bfloat16(-2));
      std::vector<float> sums(length + 1, 1);
      const auto* const half_bytes = reinterpret_cast<const std::byte*>(halves.data());
      const auto* const bfloat_bytes = reinterpret_cast<const std::byte*>(bfloats.data());
      EXPECT_EQ(set.loops.add_float16(sums.data(), half_bytes, length), 0u);
      EXPECT_EQ(set.loops.add_bfloat16(sums.data(), bfloat_bytes, length), 0u);
      for (size_t i = 0; i < length; ++i) ASSERT_EQ(sums[i], 0.5f) << i;
      EXPECT_EQ(sums.back(), 1);
    }
  }
}

TEST(SparseWideningKernels, AccumulateAndScatterByType) {
  constexpr size_t kLength = 9001;  // several blocks
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    const auto narrow = type == DataType::kFloat16 ? float_to_half : float_to_bfloat16;
    std::vector<uint16_t> values(kLength);
    std::vector<float> sums(kLength);
    double squares = 0;
    for (size_t i = 0; i < kLength; ++i) {
      values[i] = narrow(static_cast<float>(i % 7) - 3);
      sums[i] = static_cast<float>(i % 5);
      const double sum = static_cast<double>(i % 7) - 3 + static_cast<double>(i % 5);
      squares += sum * sum;
    }
    const Accumulated result =
        accumulate_widened(sums.data(), reinterpret_cast<const std::byte*>(values.data()), kLength, type);
    EXPECT_EQ(result.square_sum, squares);
    EXPECT_EQ(result.nans, 0u);
    EXPECT_EQ(sums[9000], 9000 % 7 - 3 + 9000 % 5);

    // Rounded to even, or to infinity.
    std::vector<uint16_t> target(4, 7);
    const std::vector<uint32_t> indices = {3, 1};
    const std::vector<float> taken = {1.00048828125f, -1e30f};
    scatter_narrowed(reinterpret_cast<std::byte*>(target.data()), indices.data(), taken.data(), 2, type);
    EXPECT_EQ(target, (std::vector<uint16_t>{7, narrow(-1e30f), 7, narrow(1)}));
  }
}

}  // namespace
}  // namespace kernels_sparse_types_test
}  // namespace trestle
