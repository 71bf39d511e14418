// The loops of sparse gradients against plain ones: every set of loops, length and alignment, with numbers of all
// kinds.
#include "kernels/sparse.h"

#include <gtest/gtest.h>

#include <array>
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

template <class T>
std::vector<T> numbers(Rng& rng, size_t length) {
  using Limits = std::numeric_limits<T>;
  constexpr std::array<T, 8> kSpecial = {0,
                                         -T{0},
                                         Limits::quiet_NaN(),
                                         -Limits::quiet_NaN(),
                                         Limits::infinity(),
                                         -Limits::infinity(),
                                         Limits::max(),
                                         -Limits::denorm_min()};
  std::vector<T> values(length);
  const uint64_t special = rng.below(3);  // none, some, many
  for (T& value : values) {
    value = std::ldexp(static_cast<T>(rng.uniform() - 0.5), static_cast<int>(rng.below(9)) - 4);
    if (special != 0 && rng.below(special == 1 ? 20 : 2) == 0) value = kSpecial[rng.below(kSpecial.size())];
  }
  return values;
}

const kernels::SparseLoopsOf<float>& loops_for(const kernels::SparseLoops& loops, float) {
  return loops;
}
const kernels::SparseLoopsOf<double>& loops_for(const kernels::SparseLoops& loops, double) {
  return loops.of_doubles;
}

// Calls f(loops, values, length) for all sets of loops, lengths and offsets.
template <class T, class F>
void for_all(F f) {
  for (const SparseLoopSet& set : sparse_loop_sets()) {
    Rng rng(1);
    for (const size_t length : kLengths) {
      for (size_t offset = 0; offset < kOffsets; ++offset) {
        SCOPED_TRACE(testing::Message() << set.name << ", " << length << " elements from " << offset);
        const std::vector<T> values = numbers<T>(rng, kMost + kOffsets);
        f(loops_for(set.loops, T{}), values.data() + offset, length);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

template <class T>
bool same_number(T a, T b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

template <class T>
class SparseLoopsOfType : public testing::Test {};
using SparseTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(SparseLoopsOfType, SparseTypes);

TYPED_TEST(SparseLoopsOfType, CountAndSelectWhatReachesAThreshold) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  for_all<T>([](const auto& loops, const T* values, size_t length) {
    constexpr uint32_t kGuard = 0xa5a5a5a5;
    for (const double number : {0.0, 0.25, 0.25 + 1e-12, 1.5}) {
      for (const T threshold : {static_cast<T>(number), Limits::denorm_min(), Limits::max(), Limits::infinity()}) {
        const uint32_t first = 0xffff'ffff - static_cast<uint32_t>(length);
        std::vector<uint32_t> indices(length + kSelectSlack + 1, kGuard);
        std::vector<T> selected(length + kSelectSlack + 1, 77);
        const size_t count = loops.select_reaching(indices.data(), selected.data(), values, length, threshold, first);
        ASSERT_EQ(loops.count_reaching(values, length, threshold), count);
        size_t at = 0;
        for (size_t i = 0; i < length; ++i) {
          if (std::abs(values[i]) < threshold) continue;
          ASSERT_LT(at, count);
          ASSERT_EQ(indices[at], first + i);
          ASSERT_EQ(std::memcmp(&selected[at], &values[i], sizeof(T)), 0) << i;
          ++at;
        }
        ASSERT_EQ(at, count);
        EXPECT_EQ(indices.back(), kGuard);
        EXPECT_EQ(selected.back(), 77);
      }
    }
  });
}

// Squares round, and are added afterwards: no instruction set may do both at once.
TYPED_TEST(SparseLoopsOfType, AddUpInSixteenParts) {
  using T = TypeParam;
  for_all<T>([](const auto& loops, const T* values, size_t length) {
    std::array<double, 16> magnitudes, squares;
    for (size_t j = 0; j < 16; ++j) magnitudes[j] = squares[j] = 0.1 * static_cast<double>(j);
    std::array<double, 16> expected_magnitudes = magnitudes, expected_squares = squares;
    kernels::FiniteElementsOf<T> expected;
    for (size_t i = 0; i < length; ++i) {
      volatile double square = double{values[i]} * values[i];
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
      ASSERT_TRUE(same_number(squares[j], expected_squares[j])) << j;
    }
    const auto finite = loops.find_finite(values, length);
    ASSERT_EQ(finite.count, expected.count);
    ASSERT_EQ(finite.largest, expected.largest);
  });
}

TYPED_TEST(SparseLoopsOfType, AddAndCountNans) {
  using T = TypeParam;
  for_all<T>([](const auto& loops, const T* values, size_t length) {
    const T begin = static_cast<T>(0.3);
    std::vector<T> sums(length + 1, begin);
    size_t nans = 0;
    for (size_t i = 0; i < length; ++i) nans += std::isnan(values[i]);
    Displaced bytes(values, length);
    ASSERT_EQ(loops.add(sums.data(), bytes.data(), length), nans);
    for (size_t i = 0; i < length; ++i) ASSERT_TRUE(same_number(sums[i], begin + values[i])) << i;
    EXPECT_EQ(sums.back(), begin);
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
