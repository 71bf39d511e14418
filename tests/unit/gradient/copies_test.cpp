// Copies in the model: which messages are copied, and that plans and their times know it.
#include <gtest/gtest.h>

#include "gradient/copies.h"
#include "gradient/executor/fused_buffer.h"
#include "gradient/policy/optimal.h"
#include "gradient/policy/policies.h"
#include "gradient/policy/split_free.h"
#include "gradient/policy/split_shared.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace {

constexpr MessageKind kWhole = MessageKind::kAllReduce;
constexpr MessageKind kHalf = MessageKind::kReduceScatter;

GradientWorkload placed(const std::vector<uint64_t>& bytes, const std::vector<TensorPlace>& places) {
  const std::vector<double> times(bytes.size(), 1);
  GradientWorkload workload = workload_from(bytes, times, times);
  for (size_t i = 0; i < places.size(); ++i) workload.tensors[i].place = places[i];
  return workload;
}

GradientWorkload random_places(Rng& rng, GradientWorkload workload) {
  for (GradientTensor& tensor : workload.tensors) tensor.place = static_cast<TensorPlace>(rng.below(3));
  return workload;
}

GradientLink random_copies(Rng& rng) {
  GradientLink link = random_link(rng);
  link.copy_per_byte_s = 1e-7 * rng.uniform();
  return link;
}

TEST(MessageCopies, AreOfTensorsThatLieApart) {
  using enum TensorPlace;
  const MessageCopies copies(placed({4, 4, 4, 0, 4, 4}, {kApart, kBehind, kApart, kApart, kBehind, kAnywhere}));
  EXPECT_EQ(copies.of(kWhole, {0, 1}, false), 0U) << "together";
  EXPECT_EQ(copies.of(kWhole, {1, 2}, false), 2U) << "into a buffer, and out of it";
  EXPECT_EQ(copies.of(kHalf, {1, 2}, false), 1U) << "in a half only one of them";
  EXPECT_EQ(copies.of(kWhole, {1, 1}, false), 0U) << "alone";
  EXPECT_EQ(copies.of(kWhole, {2, 4}, false), 0U) << "no bytes lie between";
  EXPECT_EQ(copies.of(kWhole, {3, 4}, false), 0U) << "nothing lies before it in the group";
  EXPECT_EQ(copies.of(kWhole, {3, 3}, false), 0U) << "no bytes";
  EXPECT_EQ(copies.of(kWhole, {5, 5}, false), 2U) << "each step says where";
  EXPECT_EQ(copies.of(kWhole, {4, 5}, false), 2U);
  EXPECT_EQ(copies.of(kHalf, {1, 1}, true), 1U) << "sharded by itself";
}

// What the model copies is what the executor copies.
TEST(MessageCopies, AreThoseOfTheExecutor) {
  Rng rng(41);
  std::vector<float> memory(10'000);
  for (int round = 0; round < 500; ++round) {
    std::vector<TensorEntry> tensors;
    auto* next = reinterpret_cast<std::byte*>(memory.data());
    for (size_t i = 0; i < 1 + rng.below(8); ++i) {
      if (rng.below(3) == 0) next += sizeof(float);
      const uint64_t count = rng.below(3) == 0 ? 0 : 1 + rng.below(20);
      tensors.push_back({"w", count, DataType::kFloat32, rng.below(5) == 0 ? nullptr : next, nullptr});
      next += tensors.back().bytes();
    }
    const std::vector<TensorPlace> places = tensor_places(tensors);
    std::vector<uint64_t> bytes;
    for (const TensorEntry& tensor : tensors) bytes.push_back(tensor.bytes());
    const MessageCopies copies(placed(bytes, places));
    for (uint32_t first = 0; first < tensors.size(); ++first) {
      std::vector<TensorParts> pieces;
      for (uint32_t last = first; last < tensors.size(); ++last) {
        pieces.push_back({last});
        const std::vector<FusedLayout> layouts = whole_layouts(tensors, pieces);
        const bool stays = layouts.empty() || own_memory(tensors, layouts[0]) != nullptr;
        EXPECT_EQ(copies.together({first, last}), stays) << round << ": " << first << " to " << last;
      }
    }
  }
}

TEST(Copies, LengthenTheirMessages) {
  GradientLink link = halved_link({4, 1});
  link.copy_per_byte_s = 0.25;
  const GradientWorkload workload = workload_from({1, 2, 3}, {2, 0, 0}, {4, 3, 2});
  const auto time = [&](const char* policy) {
    return plan_step(parse_gradient_policy(policy).value(), workload, link).value().time.iteration_s;
  };
  EXPECT_EQ(time("wfbp"), 22) << "no message is copied";
  EXPECT_EQ(time("sync"), 21 + 2 * 6 * 0.25);
}

TEST(Copies, OptimalEqualsBruteForceWithThem) {
  Rng rng(42);
  for (int round = 0; round < 500; ++round) {
    const GradientWorkload workload = random_places(rng, random_workload(rng, 9));
    const GradientLink link = random_copies(rng);
    double least = 1e300;
    for (const auto& groups : all_groupings(static_cast<uint32_t>(workload.tensors.size()))) {
      GradientPlan plan;
      plan.groups = groups;
      least = std::min(least, iteration_s(plan, workload, link));
    }
    const GradientPlan plan = plan_optimal(workload, link.all_reduce, link.copy_per_byte_s);
    EXPECT_NEAR(iteration_s(plan, workload, link), least, 1e-12 * least) << round;
  }
}

// Also where the same groups in both passes would save the copies of single tensors.
TEST(Copies, SplitPlansTakeNoLongerThanTheSimpleOnes) {
  Rng rng(43);
  for (int round = 0; round < 300; ++round) {
    const GradientWorkload workload = random_places(rng, random_workload(rng, 10));
    const GradientLink link = random_copies(rng);
    const double shared = iteration_s(plan_split_shared(workload, link), workload, link);
    for (const char* simple : {"dear:1M", "dear:8M", "dear:25M"}) {
      const double other = plan_step(parse_gradient_policy(simple).value(), workload, link).value().time.iteration_s;
      EXPECT_LE(shared, other * (1 + 1e-12)) << round << ", " << simple;
    }
  }
}

// Every message of groups that differ between the passes is copied once. So copies are so many more bytes' time.
TEST(Copies, FreeGroupsCountThemAsBytes) {
  Rng rng(44);
  for (int round = 0; round < 300; ++round) {
    const GradientWorkload workload = random_places(rng, random_workload(rng, 10));
    const GradientLink link = random_copies(rng);
    GradientLink slower = link;
    slower.copy_per_byte_s = 0;
    for (MessageCost* half : {&slower.reduce_scatter, &slower.all_gather}) half->per_byte_s += link.copy_per_byte_s;
    EXPECT_EQ(plan_split_free(workload, link), plan_split_free(workload, slower)) << round;
  }
}

TEST(Copies, ThatAreFreeChangeNoPlan) {
  Rng rng(45);
  for (int round = 0; round < 60; ++round) {
    const GradientWorkload apart = random_workload(rng, 10);
    const GradientWorkload elsewhere = random_places(rng, apart);
    const GradientLink link = random_link(rng);
    for (const ChosenPolicy& chosen : allowed_policies(kLibertyStale)) {
      const Result<PlannedStep> one = plan_step(chosen, apart, link, kLibertyStale);
      const Result<PlannedStep> other = plan_step(chosen, elsewhere, link, kLibertyStale);
      ASSERT_EQ(one.ok(), other.ok());
      if (!one.ok()) continue;
      EXPECT_EQ(one.value().plan, other.value().plan) << chosen.text;
      EXPECT_EQ(one.value().time.iteration_s, other.value().time.iteration_s) << chosen.text;
    }
  }
}

}  // namespace
}  // namespace trestle
