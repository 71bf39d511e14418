// Real numbers instead of symbols, with sums that round. All ranks of an all-reduce get the same bits in any order of
// steps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "plan/sums.h"
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
Values run(const std::vector<Plan>& plans, const Values& inputs, size_t elements, uint64_t seed,
           const std::function<float(size_t rank, size_t source)>& factor = {}) {
  PlanInterpreter interpreter(plans, elements);
  if (factor) interpreter.factor = factor;
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

// find_sums(): halving what is no sum halves every contribution once. Rank r contributes 2^r, so any other result
// shows.
TEST_P(Bits, EveryContributionIsFoundOnce) {
  const Algorithm& row = algorithms()[GetParam()];
  for (const PhaseKind kind : {PhaseKind::kReduceScatter, PhaseKind::kAllReduce, PhaseKind::kReduce}) {
    for (int32_t size = 2; size <= 20; ++size) {
      if (!row.serves(kind, size)) continue;
      const int32_t root = size / 3;
      const auto plans = plans_of_group(row, kind, size, root, InPlace::kOddRanks);
      std::vector<std::vector<uint8_t>> sums;
      Values inputs;
      for (const Plan& plan : plans) {
        const auto plan_of = [&](int32_t index) -> Result<Plan> {
          return row.build({.kind = kind, .group_size = size, .me = index, .root = root, .in_place = plan.in_place});
        };
        sums.push_back(find_sums(plan, plan_of).value());
        inputs.emplace_back(input_blocks(plan), static_cast<float>(1 << plan.me));
      }
      const Values outputs =
          run(plans, inputs, 1, 9, [&](size_t rank, size_t source) { return sums[rank][source] != 0 ? 1.0f : 0.5f; });
      for (const std::vector<float>& output : outputs) {
        for (const float sum : output)
          ASSERT_EQ(sum, static_cast<float>((1 << size) - 1) / 2) << row.name << " " << size;
      }
    }
  }
}

TEST(BitsOf, TwoAlgorithmsDoDiffer) {
  // If the inputs did not round, the tests above would show nothing.
  const Values inputs = rounding_inputs(8, 8 * kElements);
  const auto ring = plans_of_group(*find_algorithm("ring").value(), PhaseKind::kAllReduce, 8, 0, InPlace::kNo);
  const auto rd = plans_of_group(*find_algorithm("rd").value(), PhaseKind::kAllReduce, 8, 0, InPlace::kNo);
  EXPECT_FALSE(same_bits(run(ring, inputs, kElements, 1)[0], run(rd, inputs, 8 * kElements, 1)[0]));
}

std::string row_name(const ::testing::TestParamInfo<size_t>& info) {
  return std::string(algorithms()[info.param].name);
}
INSTANTIATE_TEST_SUITE_P(Rows, Bits, ::testing::Range(size_t{0}, algorithms().size()), row_name);

}  // namespace
}  // namespace trestle
