// Every row of the catalog, every phase that it serves, 1 to 33 ranks, every root, in place, out of place and mixed.
// All plans are symbolically right.
#include <gtest/gtest.h>

#include <bit>

#include "plan/checker.h"
#include "support/plan_groups.h"

namespace trestle {
namespace conformance_test {
namespace {

constexpr int32_t kLargestGroup = 33;

std::string case_name(const Algorithm& row, PhaseKind kind, int32_t size, int32_t root, InPlace in_place) {
  return std::string(row.name) + " " + to_string(kind) + ", " + std::to_string(size) + " ranks, root " +
         std::to_string(root) + ", in place " + std::to_string(static_cast<int>(in_place));
}

// A row that claims rank order must keep it.
SumOrder order_of(const Algorithm& row, PhaseKind kind, int32_t size) {
  return keeps_rank_order(row, kind, size) ? SumOrder::kOfRanks : SumOrder::kAny;
}

class Conformance : public ::testing::TestWithParam<size_t> {};

TEST_P(Conformance, EveryPlanIsRight) {
  const Algorithm& row = algorithms()[GetParam()];
  size_t cases = 0;
  for (PhaseKind kind : kAllKinds) {
    for (int32_t size = 1; size <= kLargestGroup; ++size) {
      if (!row.serves(kind, size)) continue;
      for (int32_t root = 0; root < (has_root(kind) ? size : 1); ++root) {
        for (InPlace in_place : {InPlace::kNo, InPlace::kYes, InPlace::kOddRanks}) {
          const Status status = check_plans(plans_of_group(row, kind, size, root, in_place), order_of(row, kind, size));
          ASSERT_TRUE(status.ok()) << case_name(row, kind, size, root, in_place) << ": " << status.error().message;
          ++cases;
        }
      }
    }
  }
  EXPECT_GE(cases, kLargestGroup * size_t{3});
}

// Sizes directly before and after powers of two, for more ranks than a machine word has bits.
TEST_P(Conformance, LargerGroupsToo) {
  const Algorithm& row = algorithms()[GetParam()];
  for (PhaseKind kind : kAllKinds) {
    for (int32_t size : {63, 64, 65, 100}) {
      if (!row.serves(kind, size)) continue;
      for (InPlace in_place : {InPlace::kNo, InPlace::kYes}) {
        const int32_t root = has_root(kind) ? size / 3 : 0;
        const Status status = check_plans(plans_of_group(row, kind, size, root, in_place), order_of(row, kind, size));
        ASSERT_TRUE(status.ok()) << case_name(row, kind, size, root, in_place) << ": " << status.error().message;
      }
    }
  }
}

TEST_P(Conformance, AGroupOfOneCopiesOrDoesNothing) {
  const Algorithm& row = algorithms()[GetParam()];
  for (PhaseKind kind : kAllKinds) {
    if (!row.serves(kind, 1)) continue;
    const Plan out_of_place = row.build({.kind = kind});
    ASSERT_EQ(out_of_place.steps.size(), 1u);
    EXPECT_EQ(out_of_place.steps[0].kind, StepKind::kCopy);
    EXPECT_TRUE(row.build({.kind = kind, .in_place = true}).steps.empty());
  }
}

std::string row_name(const ::testing::TestParamInfo<size_t>& info) {
  return std::string(algorithms()[info.param].name);
}
INSTANTIATE_TEST_SUITE_P(Rows, Conformance, ::testing::Range(size_t{0}, algorithms().size()), row_name);

// The check finds the difference, and every kind has an algorithm that keeps rank order.
TEST(RankOrder, IsKeptBySomeAndNotByOthers) {
  for (const char* name : {"ring", "hd"}) {
    const Algorithm& row = *find_algorithm(name).value();
    const Status status =
        check_plans(plans_of_group(row, PhaseKind::kReduceScatter, 5, 0, InPlace::kNo), SumOrder::kOfRanks);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_NE(status.error().message.find("not rank order"), std::string::npos) << status.error().message;
  }
}

// Direct sends all data to all ranks or to the root, which is too much for large data. Every kind has another
// algorithm.
TEST(RankOrder, IsKeptByMoreThanDirectForEveryKind) {
  for (PhaseKind kind : {PhaseKind::kReduceScatter, PhaseKind::kAllReduce, PhaseKind::kReduce}) {
    for (int32_t size = 3; size <= kLargestGroup; ++size) {
      SCOPED_TRACE(std::string(to_string(kind)) + " of " + std::to_string(size));
      const Algorithm& direct = *find_algorithm("direct").value();
      EXPECT_TRUE(keeps_rank_order(direct, kind, size));
      const AlgorithmCost most = direct.cost(kind, size);
      uint32_t others = 0;
      bool bears_large_data = kind == PhaseKind::kReduceScatter;  // then direct suits large data too
      for (const Algorithm& row : algorithms()) {
        if (row.name == direct.name || !row.serves(kind, size) || !keeps_rank_order(row, kind, size)) continue;
        ++others;
        const AlgorithmCost cost = row.cost(kind, size);
        bears_large_data |= cost.sent_num * most.sent_den < most.sent_num * cost.sent_den || size == 3;
      }
      EXPECT_GE(others, kind == PhaseKind::kReduceScatter ? 1u : 2u);
      EXPECT_TRUE(bears_large_data);
    }
  }
}

// Otherwise each step of an all-to-all in place would begin with the time until its first bytes are acknowledged.
TEST(Pairwise, ReceivesInPlaceOnlyWhereEarlierMessagesHaveLeft) {
  const Algorithm& row = *find_algorithm("pairwise").value();
  for (int32_t size = 2; size <= 17; ++size) {
    for (const Plan& plan : plans_of_group(row, PhaseKind::kAllToAll, size, 0, InPlace::kYes)) {
      std::vector<uint32_t> turn(plan.steps.size());  // of sends and of receives
      uint32_t sends = 0;
      uint32_t receives = 0;
      for (uint32_t s = 0; s < plan.steps.size(); ++s) {
        const Step& step = plan.steps[s];
        if (step.kind == StepKind::kSend) turn[s] = sends++;
        if (step.kind != StepKind::kRecv) continue;
        turn[s] = receives++;
        for (uint32_t d = step.first_dependency; d < step.first_dependency + step.dependencies; ++d) {
          const uint32_t before = plan.dependencies[d].step;
          if (plan.steps[before].kind == StepKind::kSend) {
            EXPECT_LT(turn[before], turn[s]) << size << " ranks, rank " << plan.me;
          }
        }
      }
      EXPECT_EQ(sends, receives);
    }
  }
}

TEST(Scratch, StaysWithinWhatTheFilesSay) {
  for (const Algorithm& row : algorithms()) {
    for (PhaseKind kind : kAllKinds) {
      for (int32_t size = 2; size <= kLargestGroup; ++size) {
        if (!row.serves(kind, size)) continue;
        for (InPlace in_place : {InPlace::kNo, InPlace::kYes}) {
          const auto n = static_cast<uint32_t>(size);
          uint32_t limit = 1;
          if (row.name == "ring") limit = kind == PhaseKind::kReduceScatter ? 2 : kind == PhaseKind::kReduce ? 1 : 0;
          if (row.name == "hd") limit = kind == PhaseKind::kReduceScatter ? (n + 1) / 2 : 0;
          if (row.name == "rd") limit = kind == PhaseKind::kAllGather ? 0 : in_place == InPlace::kYes ? 2 : 1;
          if (row.name == "binomial") limit = (n + 1) / 2;
          if (row.name == "bruck") limit = kind == PhaseKind::kAllGather ? 0 : n / 2 * (std::bit_width(n - 1) + 1);
          if (row.name == "line") limit = kind == PhaseKind::kReduceScatter ? n - 1 : 1;
          if (row.name == "otree") limit = kind == PhaseKind::kReduce ? 1 : 0;
          if (row.name == "rabenseifner") {
            const uint32_t blocks = std::bit_floor(n);
            limit = kind == PhaseKind::kAllReduce ? 0 : n == blocks ? n / 2 : blocks;
          }
          if (row.name == "pairwise") limit = in_place == InPlace::kYes ? n / 2 : 0;
          if (row.name == "dissemination") limit = std::bit_width(n - 1);
          if (row.name == "direct") {
            limit = 0;
            if (in_place == InPlace::kYes && kind == PhaseKind::kAllReduce) limit = 1;
            if (in_place == InPlace::kYes && with_known_blocks(kind) == PhaseKind::kAllToAll) limit = n / 2;
          }
          for (const Plan& plan : plans_of_group(row, kind, size, 0, in_place)) {
            EXPECT_LE(plan.scratch, limit * parts_of(plan)) << case_name(row, kind, size, 0, in_place);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace conformance_test
}  // namespace trestle
