// Real numbers instead of symbols, with sums that round. All ranks of an all-reduce get the same bits in any order of
// steps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/plan_groups.h"
#include "support/plan_interpreter.h"

namespace trestle {
namespace {

constexpr size_t kElements = 6;
using Values = std::vector<std::vector<float>>;  // by rank: all logical blocks

// Magnitudes differ by up to 2^30, so nearly every order of summation gives different bits.
Values rounding_inputs(size_t ranks, size_t count) {
  Rng rng(ranks * 1000 + count);
  Values values(ranks, std::vector<float>(count));
  for (auto& rank : values) {
    for (float& v : rank) v = std::ldexp(static_cast<float>(rng.uniform()) - 0.5f, static_cast<int>(rng.below(30)));
  }
  return values;
}

// Returns the outputs by rank. `inputs` hold the logical blocks of each rank's input, in order.
Values run(const std::vector<Plan>& plans, const Values& inputs, size_t elements, uint64_t seed) {
  PlanInterpreter interpreter(plans, elements);
  for (size_t r = 0; r < plans.size(); ++r) {
    for (uint32_t b = 0; b < input_blocks(plans[r]); ++b) {
      std::copy_n(inputs[r].data() + b * elements, elements, interpreter.input(r, b));
    }
  }
  interpreter.run(seed);
  Values outputs(plans.size());
  for (size_t r = 0; r < plans.size(); ++r) {
    for (uint32_t b = 0; b < output_blocks(plans[r]); ++b) {
      const float* block = interpreter.output(r, b);
      outputs[r].insert(outputs[r].end(), block, block + elements);
    }
  }
  return outputs;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Bits : public ::testing::TestWithParam<size_t> {};

TEST_P(Bits, AllReduceGivesEveryRankTheSame) {
  const Algorithm& row = algorithms()[GetParam()];
  for (int32_t size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17}) {
    if (!row.serves(PhaseKind::kAllReduce, size)) continue;
    std::vector<float> first;
    for (InPlace in_place : {InPlace::kNo, InPlace::kYes, InPlace::kOddRanks}) {
      const std::vector<Plan> plans = plans_of_group(row, PhaseKind::kAllReduce, size, 0, in_place);
      const size_t count = plans[0].blocks * kElements;
      const Values inputs = rounding_inputs(plans.size(), count);
      for (uint64_t seed : {1, 2}) {
        const Values outputs = run(plans, inputs, kElements, seed);
        if (first.empty()) first = outputs[0];
        for (size_t r = 0; r < outputs.size(); ++r) {
          ASSERT_TRUE(same_bits(outputs[r], first))
              << row.name << ", " << size << " ranks, rank " << r << ", seed " << seed;
        }
      }
      for (size_t i = 0; i < count; ++i) {
        double sum = 0;
        double magnitude = 0;
        for (const auto& rank : inputs) {
          sum += rank[i];
          magnitude += std::fabs(rank[i]);
        }
        ASSERT_NEAR(first[i], sum, magnitude * 1e-5) << row.name << ", " << size << " ranks";
      }
    }
  }
}

TEST_P(Bits, AllReduceEqualsReduceScatterThenAllGather) {
  const Algorithm& row = algorithms()[GetParam()];
  for (int32_t size : {2, 3, 5, 6, 7, 8, 13}) {
    if (!row.serves(PhaseKind::kReduceScatter, size) || !row.serves(PhaseKind::kAllReduce, size)) continue;
    const auto blocks = static_cast<size_t>(size);
    const Values inputs = rounding_inputs(blocks, blocks * kElements);
    const auto scatter = plans_of_group(row, PhaseKind::kReduceScatter, size, 0, InPlace::kNo);
    const auto gather = plans_of_group(row, PhaseKind::kAllGather, size, 0, InPlace::kNo);
    const auto whole = plans_of_group(row, PhaseKind::kAllReduce, size, 0, InPlace::kNo);
    const Values halves = run(gather, run(scatter, inputs, kElements, 3), kElements, 4);
    const size_t elements = blocks * kElements / whole[0].blocks;
    const Values at_once = run(whole, inputs, elements, 5);
    for (size_t r = 0; r < blocks; ++r)
      ASSERT_TRUE(same_bits(halves[r], at_once[r])) << row.name << ", " << size << " ranks";
  }
}

TEST(BitsOf, TwoAlgorithmsDoDiffer) {
  // If the inputs did not round, the tests above would show nothing.
  const Values inputs = rounding_inputs(8, 8 * kElements);
  const auto ring = plans_of_group(*find_algorithm("ring").value(), PhaseKind::kAllReduce, 8, 0, InPlace::kNo);
  const auto rd = plans_of_group(*find_algorithm("rd").value(), PhaseKind::kAllReduce, 8, 0, InPlace::kNo);
  EXPECT_FALSE(same_bits(run(ring, inputs, kElements, 1)[0], run(rd, inputs, 8 * kElements, 1)[0]));
}

// All blocks have different values, and each must arrive unchanged.
TEST_P(Bits, AllToAllDeliversEveryBlock) {
  const Algorithm& row = algorithms()[GetParam()];
  for (int32_t size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16}) {
    if (!row.serves(PhaseKind::kAllToAll, size)) continue;
    const auto n = static_cast<size_t>(size);
    const Values inputs = rounding_inputs(n, n * kElements);
    for (InPlace in_place : {InPlace::kNo, InPlace::kYes, InPlace::kOddRanks}) {
      const auto plans = plans_of_group(row, PhaseKind::kAllToAll, size, 0, in_place);
      const Values outputs = run(plans, inputs, kElements / parts_of(plans[0]), 7);
      for (size_t to = 0; to < n; ++to) {
        for (size_t i = 0; i < n * kElements; ++i) {
          ASSERT_EQ(outputs[to][i], inputs[i / kElements][to * kElements + i % kElements]) << row.name << " " << size;
        }
      }
    }
  }
}

TEST_P(Bits, AllGatherDeliversEveryBlock) {
  const Algorithm& row = algorithms()[GetParam()];
  for (int32_t size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16}) {
    if (!row.serves(PhaseKind::kAllGather, size)) continue;
    const Values inputs = rounding_inputs(static_cast<size_t>(size), kElements);
    std::vector<float> whole;
    for (const auto& rank : inputs) whole.insert(whole.end(), rank.begin(), rank.end());
    for (InPlace in_place : {InPlace::kNo, InPlace::kYes, InPlace::kOddRanks}) {
      const auto plans = plans_of_group(row, PhaseKind::kAllGather, size, 0, in_place);
      for (const auto& rank : run(plans, inputs, kElements, 7)) ASSERT_EQ(rank, whole) << row.name << " " << size;
    }
  }
}

std::string row_name(const ::testing::TestParamInfo<size_t>& info) {
  return std::string(algorithms()[info.param].name);
}
INSTANTIATE_TEST_SUITE_P(Rows, Bits, ::testing::Range(size_t{0}, algorithms().size()), row_name);

}  // namespace
}  // namespace trestle
