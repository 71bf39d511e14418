// The loops of sparse gradients that widen float16 and bfloat16, against plain ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/small_float.h"
#include "kernels/sparse.h"
#include "unit/kernels/kernel_loop_sets.h"

namespace trestle {
namespace kernels_sparse_types_test {
namespace {

bool same(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

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
    for (size_t length = 0; length <= 65; ++length) {
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
