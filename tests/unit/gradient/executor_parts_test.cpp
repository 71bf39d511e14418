// The parts of the executor that need no communicator: layouts of buffers, plans as bytes, fits and profiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <limits>

#include "gradient/executor/fused_buffer.h"
#include "gradient/executor/link_fit.h"
#include "gradient/executor/nan_count.h"
#include "gradient/executor/plan_bytes.h"
#include "gradient/executor/step_profile.h"
#include "gradient/network_cost.h"
#include "gradient/policy/policies.h"
#include "unit/gradient/workloads_for_tests.h"

namespace trestle {
namespace executor_parts_test {
namespace {

// ---- layouts

std::vector<TensorEntry> entries(const std::vector<uint64_t>& counts) {
  std::vector<TensorEntry> all;
  for (const uint64_t count : counts) {
    all.push_back({"w" + std::to_string(all.size()), count, DataType::kFloat32, nullptr, nullptr});
  }
  return all;
}

std::vector<TensorParts> whole_pieces(const std::vector<TensorEntry>& tensors) {
  std::vector<TensorParts> pieces;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count > 0) pieces.push_back({i});
  }
  return pieces;
}

// Every element of every tensor is in the spans once, and no two spans share elements of the buffer.
void expect_cover(const std::vector<TensorEntry>& tensors, const std::vector<FusedSpan>& spans, uint64_t room) {
  std::set<std::pair<uint32_t, uint64_t>> elements;
  std::set<uint64_t> places;
  for (const FusedSpan& span : spans) {
    for (uint64_t k = 0; k < span.count; ++k) {
      ASSERT_LT(span.in_tensor + k, tensors[span.tensor].count);
      ASSERT_LT(span.in_buffer + k, room);
      ASSERT_TRUE(elements.insert({span.tensor, span.in_tensor + k}).second);
      ASSERT_TRUE(places.insert(span.in_buffer + k).second);
    }
  }
  size_t all = 0;
  for (const TensorEntry& tensor : tensors) all += tensor.count;
  ASSERT_EQ(elements.size(), all);
}

TEST(FusedBuffer, HoldsEveryElementOnce) {
  Rng rng(21);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> counts(1 + rng.below(8));
    for (uint64_t& count : counts) count = rng.below(4) == 0 ? 0 : rng.below(40);
    const std::vector<TensorEntry> tensors = entries(counts);
    const std::vector<TensorParts> pieces = whole_pieces(tensors);
    for (const FusedLayout& layout : whole_layouts(tensors, pieces)) expect_cover(tensors, layout.spans, layout.count);
    const auto ranks = static_cast<uint32_t>(1 + rng.below(6));
    std::vector<FusedSpan> shards;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      for (const ShardedLayout& layout : sharded_layouts(tensors, pieces, ranks, rank)) {
        EXPECT_EQ(layout.whole.count, layout.block * ranks);
        expect_cover(tensors, layout.whole.spans, layout.whole.count);
        for (FusedSpan span : layout.own) {
          ASSERT_LE(span.in_buffer + span.count, layout.block);
          span.in_buffer += rank * layout.block;
          EXPECT_NE(std::ranges::find(layout.whole.spans, span), layout.whole.spans.end());
          shards.push_back(span);
        }
      }
    }
    if (!pieces.empty()) expect_cover(tensors, shards, UINT64_MAX);
  }
}

TEST(FusedBuffer, PartsOfATensorMeet) {
  const std::vector<TensorEntry> tensors = entries({10});
  uint64_t next = 0;
  for (uint64_t part = 0; part < 3; ++part) {
    const auto layouts = whole_layouts(tensors, {{0, part, part + 1, 3}});
    ASSERT_EQ(layouts.size(), 1U);
    EXPECT_EQ(layouts[0].spans[0].in_tensor, next);
    next += layouts[0].spans[0].count;
  }
  EXPECT_EQ(next, 10U);
}

TEST(FusedBuffer, TypesHaveBuffersOfTheirOwn) {
  std::vector<TensorEntry> tensors = entries({3, 4, 5});
  tensors[1].type = DataType::kFloat64;
  const auto layouts = whole_layouts(tensors, whole_pieces(tensors));
  ASSERT_EQ(layouts.size(), 2U);
  EXPECT_EQ(layouts[0].spans, (std::vector<FusedSpan>{{0, 0, 0, 3}, {2, 0, 3, 5}}));
  EXPECT_EQ(layouts[1].type, DataType::kFloat64);
  EXPECT_EQ(layouts[1].spans, (std::vector<FusedSpan>{{1, 0, 0, 4}}));
}

TEST(FusedBuffer, UsesTheTensorsMemoryIfTheyLieTogether) {
  std::vector<float> memory(100);
  auto* const begin = reinterpret_cast<std::byte*>(memory.data());
  std::vector<TensorEntry> tensors = entries({3, 0, 5});
  const FusedLayout layout = whole_layouts(tensors, whole_pieces(tensors))[0];
  EXPECT_EQ(own_memory(tensors, layout), nullptr);
  tensors[0].gradient = begin;
  tensors[2].gradient = begin + 3 * sizeof(float);
  EXPECT_EQ(own_memory(tensors, layout), begin);
  tensors[2].gradient += sizeof(float);
  EXPECT_EQ(own_memory(tensors, layout), nullptr);
}

TEST(FusedBuffer, ClippedSpansAreThePartInside) {
  const std::vector<FusedSpan> spans = {{0, 0, 0, 4}, {1, 2, 4, 4}};
  EXPECT_EQ(clipped(spans, 2, 6), (std::vector<FusedSpan>{{0, 2, 2, 2}, {1, 2, 4, 2}}));
  EXPECT_EQ(clipped(spans, 8, 9), std::vector<FusedSpan>{});
}

// ---- plans as bytes

TEST(PlanBytes, ComeBackAsTheSamePlan) {
  Rng rng(22);
  for (int round = 0; round < 60; ++round) {
    const GradientWorkload workload = random_workload(rng, 10);
    const GradientLink link = random_link(rng);
    for (const ChosenPolicy& chosen : allowed_policies(kLibertyStale)) {
      const std::vector<double> ratios = {1 + rng.uniform()};
      const Result<PlannedStep> planned = plan_step(chosen, workload, link, kLibertyStale, ratios);
      if (!planned.ok()) continue;  // too many parts
      const std::vector<std::byte> bytes = plan_bytes(planned.value());
      const Result<PlannedStep> back = plan_from_bytes(bytes);
      ASSERT_TRUE(back.ok()) << chosen.text;
      EXPECT_EQ(back.value().plan, planned.value().plan) << chosen.text;
      EXPECT_EQ(back.value().policy, planned.value().policy);
      EXPECT_EQ(back.value().batches, planned.value().batches);
      EXPECT_EQ(back.value().time.iteration_s, planned.value().time.iteration_s);
      EXPECT_EQ(plan_bytes(back.value()), bytes);
    }
  }
}

TEST(PlanBytes, SayWhatTravels) {
  const GradientWorkload workload = workload_from({4000, 4000}, {1, 1}, {1, 1});
  const StepPlanRequest request{workload, {}, {}, kLibertyCompress, {}, {}, NetworkModel{1e-3, 1e-3, 0, 8}};
  const PlannedStep planned = plan_step(parse_gradient_policy("topk:0.25").value(), request).value();
  const PlannedStep back = plan_from_bytes(plan_bytes(planned)).value();
  ASSERT_TRUE(back.compressed.has_value());
  EXPECT_EQ(back.compressed->ratio, 0.25);
  EXPECT_EQ(back.compressed->collective, planned.compressed->collective);
  EXPECT_EQ(back.compressed->selection_s, planned.compressed->selection_s);
  EXPECT_NE(plan_json(back).find("\"ratio\":0.25,\"collective\":\"ring\""), std::string::npos) << plan_json(back);
}

TEST(PlanBytes, OtherBytesAreRefused) {
  Rng rng(23);
  const GradientWorkload workload = workload_from({1, 2, 3}, {1, 1, 1}, {1, 1, 1});
  const std::vector<std::byte> bytes =
      plan_bytes(plan_step(parse_gradient_policy("optimal").value(), workload, {}).value());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(plan_from_bytes(std::span(bytes).first(length)).ok()) << length;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> other = bytes;
    other[i] ^= static_cast<std::byte>(1 + rng.below(255));
    EXPECT_NE(checksum(other), checksum(bytes)) << i;
    (void)plan_from_bytes(other);  // refused or another plan, but it reads nothing outside
  }
}

TEST(PlanBytes, JsonHasTheNumbers) {
  PlannedStep step;
  step.policy = "optimal";
  step.plan.groups = {{0, 1}, {2, 2}};
  step.time.iteration_s = 0.1;
  EXPECT_EQ(plan_json(step),
            "{\"policy\":\"optimal\",\"iteration_s\":0.1,\"exposed_s\":0,\"updates_per_iteration\":1,\"age\":0,"
            "\"groups\":[[0,1],[2,2]],\"gather_groups\":[],\"batches\":[1]}");
  GradientWorkload workload = workload_from({4}, {1.5}, {2});
  workload.tensors[0].name = "a\"b\n";
  EXPECT_EQ(workload_json(workload),
            "{\"tensors\":[{\"name\":\"a\\\"b\\u000a\",\"bytes\":4,\"forward_s\":1.5,\"backward_s\":2}]}");
}

// Times and models of the loss are finite one by one. Their sums, and what is expected of the loss, may not be.
TEST(PlanBytes, JsonHasNullForWhatIsNoNumber) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const GradientWorkload workload = workload_from({4, 4}, {kMost, kMost}, {kMost, kMost});
  const GradientLink link = halved_link({kMost, kMost});
  PlannedStep step = plan_step(parse_gradient_policy("wfbp").value(), workload, link).value();
  EXPECT_EQ(step.time.iteration_s, std::numeric_limits<double>::infinity());
  const PreserverModel model{.loss = kMost, .rate = kMost, .drift = kMost, .deviation = kMost, .epsilon = 0.01};
  const std::vector<uint32_t> batches = {1, 2};
  step.loss = compare_updates(model, batches);
  ASSERT_FALSE(std::isfinite(step.loss->ratio));
  const std::string json = plan_json(step);
  for (const char* member : {"\"iteration_s\":null,", "\"loss_ratio\":null,", "\"loss_accepted\":false"}) {
    EXPECT_NE(json.find(member), std::string::npos) << json;
  }
  for (const char* word : {"inf", "nan"}) EXPECT_EQ(json.find(word), std::string::npos) << json;
}

TEST(PlanBytes, JsonHasAPointInEveryLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* locale : {"C", "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;  // not on this machine
    PlannedStep step;
    step.time.iteration_s = 1.5e-7;
    step.time.exposed_s = 1 / 3.0;
    step.updates_per_iteration = 1e300;
    const std::string json = plan_json(step);
    EXPECT_NE(json.find("\"iteration_s\":1.5e-07,\"exposed_s\":0.3333333333333333,"), std::string::npos) << json;
    EXPECT_NE(json.find("\"updates_per_iteration\":1e+300,"), std::string::npos) << json;
  }
  std::setlocale(LC_ALL, before.c_str());
}

// ---- NaNs

TEST(NanCount, KnowsEveryFloat) {
  const auto nans = [](DataType type, std::vector<uint64_t> elements) {
    std::vector<std::byte> bytes;
    for (const uint64_t element : elements) {
      for (size_t i = 0; i < size_of(type); ++i) bytes.push_back(static_cast<std::byte>(element >> 8 * i));
    }
    return count_nans(bytes.data(), elements.size(), type);
  };
  EXPECT_EQ(nans(DataType::kFloat32, {0x7fc00000, 0xffc00001, 0x7f800000, 0xff800000, 0, 0x3f800000}), 2U);
  EXPECT_EQ(nans(DataType::kFloat64, {0x7ff8000000000000, 0x7ff0000000000000, 0xfff0000000000001, 1}), 2U);
  EXPECT_EQ(nans(DataType::kFloat16, {0x7e00, 0x7c00, 0xfc00, 0xfc01, 0x3c00}), 2U);
  EXPECT_EQ(nans(DataType::kBfloat16, {0x7fc0, 0x7f80, 0xff81, 0x3f80}), 2U);
  EXPECT_EQ(nans(DataType::kFloat8e4m3, {0x7f, 0xff, 0x7e, 0xfe, 0x38}), 2U);
  EXPECT_EQ(nans(DataType::kFloat8e5m2, {0x7d, 0x7e, 0xff, 0x7c, 0xfc, 0x3c}), 3U);
  EXPECT_EQ(nans(DataType::kInt32, {0x7fc00000, 0xffffffff}), 0U);
}

// ---- fits

std::vector<MeasuredMessage> points_of(const MessageCost& cost) {
  std::vector<MeasuredMessage> points;
  for (double bytes = 1024; bytes <= 1 << 22; bytes *= 4) {
    points.push_back({bytes, cost.startup_s + cost.per_byte_s * bytes});
  }
  return points;
}

TEST(LinkFit, FindsTheCostOfExactPoints) {
  for (const MessageCost cost : {MessageCost{1e-5, 1e-9}, {1e-3, 1e-10}, {0, 1e-9}, {1e-5, 0}}) {
    const MessageCost found = fit_cost(points_of(cost));
    EXPECT_NEAR(found.startup_s, cost.startup_s, 1e-6 * (cost.startup_s + 1e-9));
    EXPECT_NEAR(found.per_byte_s, cost.per_byte_s, 1e-6 * (cost.per_byte_s + 1e-12));
  }
}

// On shaped links, 16 KiB fit into the bucket and take less than the line says.
TEST(LinkFit, IsNotTiltedByOneSize) {
  const MessageCost cost{1e-3, 1.5e-7};
  for (const double factor : {0.3, 0.5, 1.5, 3.0}) {
    for (size_t off = 0; off < points_of(cost).size(); ++off) {
      std::vector<MeasuredMessage> points = points_of(cost);
      points[off].seconds *= factor;
      const MessageCost found = fit_cost_robustly(points);
      for (const MeasuredMessage& point : points_of(cost)) {
        if (point.bytes < (1 << 18)) continue;  // the startup follows from the two smallest sizes
        EXPECT_NEAR(found.of(static_cast<uint64_t>(point.bytes)), point.seconds, 0.03 * point.seconds)
            << "size " << off << " takes " << factor << " times as long";
      }
    }
  }
  EXPECT_NEAR(fit_cost_robustly(points_of({1e-5, 0})).per_byte_s, 0, 1e-20);
}

TEST(LinkFit, NeverFindsNegativeCosts) {
  Rng rng(24);
  for (int round = 0; round < 500; ++round) {
    std::vector<MeasuredMessage> points = points_of({1e-6 * rng.uniform(), 1e-10 * rng.uniform()});
    for (MeasuredMessage& point : points) point.seconds = (point.seconds + 1e-9) * std::exp2(4 * rng.uniform() - 2);
    const MessageCost found = fit_cost(points);
    EXPECT_GE(found.startup_s, 0);
    EXPECT_GE(found.per_byte_s, 0);
    EXPECT_GT(found.of(1 << 20), 0);
    // No other cost that is not negative has a smaller error.
    const auto error = [&](const MessageCost& cost) {
      double sum = 0;
      for (const MeasuredMessage& point : points) {
        sum += std::pow((cost.startup_s + cost.per_byte_s * point.bytes) / point.seconds - 1, 2);
      }
      return sum;
    };
    for (int other = 0; other < 20; ++other) {
      const MessageCost near{found.startup_s * (0.5 + rng.uniform()), found.per_byte_s * (0.5 + rng.uniform())};
      EXPECT_LE(error(found), error(near) * (1 + 1e-9));
    }
  }
}

// ---- profiles

TEST(StepProfile, TakesTimesFromTheStamps) {
  StepProfile profile(3, 1000);
  for (int64_t step = 0; step < 2; ++step) {
    const int64_t t = 1000 + 100'000 * step;
    profile.waited(0, t + 100, t + 200);  // blocked for 100
    profile.waited(1, t + 500, t + 500);
    profile.waited(2, t + 1500, t + 2000);
    profile.ready(2, t + 5000);
    profile.ready(1, t + 5400);
    profile.ready(0, t + 6000);
    profile.end_step(t + 7000);
  }
  EXPECT_EQ(profile.steps(), 2U);
  const std::vector<double> forward = profile.forward_s(), backward = profile.backward_s();
  const std::vector<double> expected_forward = {300e-9, 1000e-9, 1000e-9},
                            expected_backward = {600e-9, 400e-9, 2000e-9};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(forward[i], expected_forward[i], 1e-15) << i;
    EXPECT_NEAR(backward[i], expected_backward[i], 1e-15) << i;
  }
}

TEST(StepProfile, WithoutWaitsTheFirstGradientHasTheForwardPass) {
  StepProfile profile(2, 1000);
  profile.ready(0, 4000);
  profile.ready(1, 4500);
  profile.end_step(5000);
  EXPECT_EQ(profile.forward_s(), (std::vector<double>{0, 0}));
  EXPECT_NEAR(profile.backward_s()[0], 3e-6, 1e-15);
  EXPECT_NEAR(profile.backward_s()[1], 5e-7, 1e-15);
}

TEST(StepProfile, AStepWithoutGradientsHasNoTimes) {
  StepProfile profile(2, 1000);
  profile.waited(0, 1100, 1200);
  profile.waited(1, 1500, 1500);
  profile.end_step(5000);
  EXPECT_NEAR(profile.forward_s()[0], 3e-7, 1e-15);
  EXPECT_EQ(profile.backward_s(), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace executor_parts_test
}  // namespace trestle
