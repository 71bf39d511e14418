// The verification data of the perf binaries: the closed form equals the sum over all ranks in any order, and wrong or
// torn data is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "perf/driver/codec.h"
#include "perf/driver/collective.h"
#include "perf/driver/pattern.h"
#include "perf/driver/types.h"
#include "support/elements.h"

namespace trestle::perf {
namespace {

using elements::decode;
using elements::encode;

// Folds in a random order in double. Checks that every partial result is exact in the type, and that the result equals
// the closed form.
void check_float(trestleDataType_t type, trestleRedOp_t op, int nranks) {
  const elements::Format& format = elements::format_of(type);
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
      const double value = decode(type, elements::load(type, inputs[order[k]].data(), i)) * scalar;
      total = k == 0 ? value : elements::fold_floats(op, total, value);
      const bool exact = decode(type, encode(type, total)) == total;
      ASSERT_TRUE(exact) << type_info(type).name << " " << op_name(op) << " n=" << nranks << " element " << i << " "
                         << total;
    }
    const double closed = decode(type, elements::load(type, expected.data(), i));
    if (op == trestleAvg) {
      EXPECT_NEAR(closed, total / nranks,
                  std::fabs(total / nranks) * std::ldexp(1.0, -format.mantissa_bits) +
                      std::ldexp(1.0, 1 - format.bias() - format.mantissa_bits));
    } else {
      ASSERT_EQ(closed, total) << type_info(type).name << " " << op_name(op) << " n=" << nranks << " element " << i;
    }
  }
}

void check_integer(trestleDataType_t type, trestleRedOp_t op, int nranks) {
  const size_t bytes = type_info(type).bytes, count = 257;
  const Reduction what{type, op, nranks, 42};
  std::vector<unsigned char> total(count * bytes), input(count * bytes), expected(count * bytes);
  for (int r = 0; r < nranks; ++r) {
    fill_contribution(what, r, 0, count, input.data());
    const auto scalar = static_cast<uint64_t>(op == kMulSum ? mul_sum_scalar(r) : 1);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t next = elements::load(type, input.data(), i) * scalar;
      const uint64_t before = elements::load(type, total.data(), i);
      const uint64_t bits = r == 0 ? next : elements::fold_integers(type, op, before, next);
      elements::store(type, total.data(), i, bits);
    }
  }
  for (size_t i = 0; i < count && op == trestleAvg; ++i) {
    const uint64_t sum = elements::load(type, total.data(), i);
    elements::store(type, total.data(), i, elements::divide_integer(type, sum, nranks));
  }
  fill_reduced(what, 0, count, expected.data());
  EXPECT_EQ(total, expected) << type_info(type).name << " " << op_name(op) << " n=" << nranks;
}

TEST(PerfPattern, ClosedFormsAreWhatAllRanksAddUpTo) {
  for (const int nranks : {1, 2, 3, 4, 5, 7, 8, 16, 33, 100}) {
    for (int o = 0; o < kOps; ++o) {
      const trestleRedOp_t op = static_cast<trestleRedOp_t>(o);
      for (int t = 0; t < trestleNumTypes; ++t) {
        const auto type = static_cast<trestleDataType_t>(t);
        (elements::is_float(type) ? check_float : check_integer)(type, op, nranks);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(PerfPattern, EncodersRoundToNearestEven) {
  const auto check = [](auto codec, trestleDataType_t type) {
    using Codec = decltype(codec);
    for (uint32_t word = 0; word < Codec::kLargest; ++word) {
      const double below = decode(type, word);
      const double above = decode(type, word + 1);
      ASSERT_EQ(Codec::encode(static_cast<float>(below)), word);
      ASSERT_EQ(Codec::encode(static_cast<float>((below + above) / 2)), word + (word & 1)) << word;
      ASSERT_EQ(Codec::encode(static_cast<float>(-(below + (above - below) * 0.75))),
                word + 1 + elements::sign_bit(type));
    }
  };
  check(Float16{}, trestleFloat16);
  check(Float8e4m3{}, trestleFloat8e4m3);
  check(Float8e5m2{}, trestleFloat8e5m2);
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
