// The verification data of the perf binaries: the closed form equals the sum over all ranks in any order, and wrong or
// torn data is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "perf/driver/codec.h"
#include "perf/driver/collective.h"
#include "perf/driver/pattern.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

// The value of a bit pattern by the definition of the format, independent of codec.h.
double decode(uint64_t word, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint64_t mantissa = word & ((uint64_t{1} << mantissa_bits) - 1);
  const int exponent = static_cast<int>((word >> mantissa_bits) & ((uint64_t{1} << exponent_bits) - 1));
  const double magnitude =
      exponent == 0 ? std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits)
                    : std::ldexp(1 + std::ldexp(static_cast<double>(mantissa), -mantissa_bits), exponent - bias);
  return ((word >> (exponent_bits + mantissa_bits)) & 1) ? -magnitude : magnitude;
}

uint64_t word_at(const std::vector<unsigned char>& data, size_t bytes, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, data.data() + index * bytes, bytes);
  return word;
}

struct FloatFormat {
  int exponent_bits, mantissa_bits;
};
FloatFormat format_of(trestleDataType_t type) {
  switch (type) {
    case trestleFloat16:
      return {5, 10};
    case trestleBfloat16:
      return {8, 7};
    case trestleFloat8e4m3:
      return {4, 3};
    case trestleFloat8e5m2:
      return {5, 2};
    case trestleFloat32:
      return {8, 23};
    default:
      return {11, 52};
  }
}

bool representable(double value, const FloatFormat& format) {
  if (value == 0) return true;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // [1/2, 1)
  const double digits = std::ldexp(fraction, format.mantissa_bits + 1);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  return digits == std::floor(digits) && exponent - 1 >= 1 - bias && exponent - 1 <= bias;
}

double fold_floats(trestleRedOp_t op, double a, double b) {
  switch (op) {
    case trestleProd:
      return a * b;
    case trestleMax:
      return std::max(a, b);
    case trestleMin:
      return std::min(a, b);
    default:
      return a + b;
  }
}

// Folds in a random order in double. Checks that every partial result is exact in the type, and that the result equals
// the closed form.
void check_float(trestleDataType_t type, trestleRedOp_t op, int nranks) {
  const FloatFormat format = format_of(type);
  const size_t bytes = type_info(type).bytes, count = 257;
  const Reduction what{type, op, nranks, 42};
  std::vector<std::vector<unsigned char>> inputs(static_cast<size_t>(nranks),
                                                 std::vector<unsigned char>(count * bytes));
  for (int r = 0; r < nranks; ++r) fill_contribution(what, r, 0, count, inputs[static_cast<size_t>(r)].data());
  std::vector<unsigned char> expected(count * bytes);
  fill_reduced(what, 0, count, expected.data());
  std::vector<size_t> order(static_cast<size_t>(nranks));
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937 random(7);
  for (size_t i = 0; i < count; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    double total = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const int scalar = op == kMulSum ? mul_sum_scalar(static_cast<int>(order[k])) : 1;
      const double value =
          decode(word_at(inputs[order[k]], bytes, i), format.exponent_bits, format.mantissa_bits) * scalar;
      total = k == 0 ? value : fold_floats(op, total, value);
      const bool exact = op == trestleMax || op == trestleMin || representable(total, format);
      ASSERT_TRUE(exact) << type_info(type).name << " " << op_name(op) << " n=" << nranks << " element " << i << " "
                         << total;
    }
    const double closed = decode(word_at(expected, bytes, i), format.exponent_bits, format.mantissa_bits);
    if (op == trestleAvg) {
      EXPECT_NEAR(closed, total / nranks,
                  std::fabs(total / nranks) * std::ldexp(1.0, -format.mantissa_bits) +
                      std::ldexp(1.0, 2 - (1 << (format.exponent_bits - 1)) - format.mantissa_bits));
    } else {
      ASSERT_EQ(closed, total) << type_info(type).name << " " << op_name(op) << " n=" << nranks << " element " << i;
    }
  }
}

template <class Integer>
void check_integer(trestleDataType_t type, trestleRedOp_t op, int nranks) {
  using Word = std::make_unsigned_t<Integer>;
  const size_t count = 257;
  const Reduction what{type, op, nranks, 42};
  std::vector<Integer> total(count), input(count), expected(count);
  fill_contribution(what, 0, 0, count, total.data());
  for (int r = 1; r < nranks; ++r) {
    fill_contribution(what, r, 0, count, input.data());
    for (size_t i = 0; i < count; ++i) {
      const int scalar = op == kMulSum ? mul_sum_scalar(r) : 1;
      const Word a = static_cast<Word>(total[i]),
                 b = static_cast<Word>(static_cast<Word>(input[i]) * static_cast<Word>(scalar));
      switch (op) {
        case trestleProd:
          total[i] = static_cast<Integer>(static_cast<Word>(a * b));
          break;
        case trestleMax:
          total[i] = std::max(total[i], input[i]);
          break;
        case trestleMin:
          total[i] = std::min(total[i], input[i]);
          break;
        default:
          total[i] = static_cast<Integer>(static_cast<Word>(a + b));
          break;
      }
    }
  }
  if (op == trestleAvg) {
    for (Integer& value : total) {
      if constexpr (std::is_signed_v<Integer>) {
        value = static_cast<Integer>(static_cast<int64_t>(value) / nranks);
      } else {
        value = static_cast<Integer>(static_cast<uint64_t>(value) / static_cast<uint64_t>(nranks));
      }
    }
  }
  fill_reduced(what, 0, count, expected.data());
  EXPECT_EQ(total, expected) << type_info(type).name << " " << op_name(op) << " n=" << nranks;
}

TEST(PerfPattern, ClosedFormsAreWhatAllRanksAddUpTo) {
  for (const int nranks : {1, 2, 3, 4, 5, 7, 8, 16, 33, 100}) {
    for (int o = 0; o < kOps; ++o) {
      const trestleRedOp_t op = static_cast<trestleRedOp_t>(o);
      for (const trestleDataType_t type :
           {trestleFloat16, trestleBfloat16, trestleFloat8e4m3, trestleFloat8e5m2, trestleFloat32, trestleFloat64}) {
        check_float(type, op, nranks);
        if (HasFatalFailure()) return;
      }
      check_integer<int8_t>(trestleInt8, op, nranks);
      check_integer<uint8_t>(trestleUint8, op, nranks);
      check_integer<int32_t>(trestleInt32, op, nranks);
      check_integer<uint32_t>(trestleUint32, op, nranks);
      check_integer<int64_t>(trestleInt64, op, nranks);
      check_integer<uint64_t>(trestleUint64, op, nranks);
    }
  }
}

TEST(PerfPattern, EncodersRoundToNearestEven) {
  const auto check = [](auto codec, const FloatFormat& format, uint32_t largest) {
    using Codec = decltype(codec);
    for (uint32_t word = 0; word < largest; ++word) {
      const double below = decode(word, format.exponent_bits, format.mantissa_bits);
      const double above = decode(word + 1, format.exponent_bits, format.mantissa_bits);
      ASSERT_EQ(Codec::encode(static_cast<float>(below)), word);
      ASSERT_EQ(Codec::encode(static_cast<float>((below + above) / 2)), word + (word & 1)) << word;
      ASSERT_EQ(Codec::encode(static_cast<float>(-(below + (above - below) * 0.75))),
                word + 1 + (1u << (format.exponent_bits + format.mantissa_bits)));
    }
  };
  check(Float16{}, {5, 10}, Float16::kLargest);
  check(Float8e4m3{}, {4, 3}, Float8e4m3::kLargest);
  check(Float8e5m2{}, {5, 2}, Float8e5m2::kLargest);
  EXPECT_EQ(Bfloat16::encode(1.00390625f), 0x3f80);  // half way: to even
  EXPECT_EQ(Bfloat16::encode(1.01171875f), 0x3f82);
}

TEST(PerfPattern, PiecesAreTheSameAsTheWhole) {
  for (int o = 0; o < kOps; ++o) {
    const Reduction what{trestleFloat32, static_cast<trestleRedOp_t>(o), 5, 9};
    std::vector<uint32_t> whole(1000), piece(100);
    fill_contribution(what, 3, 0, 1000, whole.data());
    fill_contribution(what, 3, 700, 100, piece.data());
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 700));
  }
  std::vector<uint64_t> whole(1000), piece(100);
  const size_t far = (size_t{1} << 32) - 500;  // the index exceeds 32 bits in the middle
  fill_copied(trestleInt64, 1, 2, far, 1000, whole.data());
  fill_copied(trestleInt64, 1, 2, far + 450, 100, piece.data());
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 450));
}

TEST(PerfPattern, ContributionsDifferBetweenRanksAndElements) {
  const Reduction what{trestleFloat32, trestleSum, 4, 3};
  std::vector<std::vector<uint32_t>> ranks(4, std::vector<uint32_t>(4096));
  for (int r = 0; r < 4; ++r) fill_contribution(what, r, 0, 4096, ranks[static_cast<size_t>(r)].data());
  for (size_t a = 0; a < 4; ++a) {
    std::vector<uint32_t> sorted = ranks[a];
    std::sort(sorted.begin(), sorted.end());
    EXPECT_GT(std::unique(sorted.begin(), sorted.end()) - sorted.begin(), 2000);
    for (size_t b = 0; b < a; ++b) {
      size_t equal = 0;
      for (size_t i = 0; i < 4096; ++i) equal += ranks[a][i] == ranks[b][i] ? 1 : 0;
      // Two ranks have equal values for at most half of the elements.
      EXPECT_LT(equal, 2300u);
    }
  }
}

TEST(PerfPattern, FindsWrongBitsAndForgivesAveragesTwo) {
  std::vector<uint32_t> expected(100, 0x3f800000u), got = expected;
  EXPECT_EQ(count_wrong(trestleFloat32, trestleSum, got.data(), expected.data(), 100), 0u);
  got[3] += 1;
  got[7] -= 2;
  got[9] += 3;
  EXPECT_EQ(count_wrong(trestleFloat32, trestleSum, got.data(), expected.data(), 100), 3u);
  EXPECT_EQ(count_wrong(trestleFloat32, trestleAvg, got.data(), expected.data(), 100), 1u);
  EXPECT_EQ(count_wrong(trestleInt32, trestleAvg, got.data(), expected.data(), 100), 3u);
}

TEST(PerfPattern, BlocksComeFromTheirRanks) {
  const Case call{trestleFloat16, trestleSum, 0, 3, 1, 8, 5};
  std::vector<uint16_t> got(20), sent(8);
  fill_blocks_expected(call, 16, 4, 20, got.data());  // from the middle of block 0 to the end of block 2
  fill_copied(trestleFloat16, 5, 1, 16, 8, sent.data());
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin() + 4));
  fill_copied(trestleFloat16, 5, 2, 16, 8, sent.data());
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin() + 12));
}

TEST(PerfPattern, BlockCountsAreMultiplesOf16Bytes) {
  EXPECT_EQ(block_count(1024, 4, 8), 128u);
  EXPECT_EQ(block_count(1023, 4, 8), 124u);
  EXPECT_EQ(block_count(2, 4, 8), 0u);
  EXPECT_EQ(block_count(100, 8, 3), 32u);
  EXPECT_EQ(block_count(100, 1, 3), 32u);
}

}  // namespace
}  // namespace trestle::perf
