// The policy `auto`: its required results in the paper's model, its upper limits, on the systems of the paper and on
// random ones. The result does not depend on earlier plans.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "sched/policy/fluid_bound.h"
#include "sched/policy/portfolio.h"
#include "sched/policy/priority_rules.h"
#include "unit/sched/systems.h"

namespace trestle {
namespace auto_test {
namespace {

double time_ns(PolicyCase& test, uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(test.model().scale().ticks_per_ns);
}

struct Target {
  uint64_t megabytes;
  uint32_t chunks;
  double utilization;
};

class Targets : public testing::TestWithParam<Target> {};

TEST_P(Targets, AreReachedInTheMeanOverTheSystemsOfThePaper) {
  const auto [megabytes, chunks, utilization] = GetParam();
  const uint64_t bytes = megabytes << 20;
  double sum = 0;
  for (const PaperSystem& system : paper_systems()) {
    PolicyCase test = paper_case(to_topology(system), bytes, chunks);
    const Portfolio portfolio = plan_portfolio(test.request());
    const double reached = ideal_ns(to_topology(system), bytes, true) / time_ns(test, portfolio.best.time_ticks);
    const uint64_t baseline = plan_baseline(test.request()).time_ticks;
    EXPECT_LE(portfolio.best.time_ticks, baseline) << system.name;
    EXPECT_LE(portfolio.bound_ticks, portfolio.best.time_ticks) << system.name;
    sum += reached;
  }
  const double mean = sum / static_cast<double>(paper_systems().size());
  std::printf("%4d MB, %2u chunks: mean utilisation %.2f %%\n", static_cast<int>(megabytes), chunks, 100 * mean);
  EXPECT_GE(mean, utilization);
}

INSTANTIATE_TEST_SUITE_P(Paper, Targets,
                         testing::Values(Target{100, 4, 0.86}, Target{100, 8, 0.95}, Target{100, 16, 0.98},
                                         Target{100, 64, 0.993}, Target{1000, 4, 0.86}, Target{1000, 8, 0.95},
                                         Target{1000, 16, 0.98}, Target{1000, 64, 0.993}));

// Checks a schedule: all bytes, each dimension once per half, reduce-scatter first, orders that replay.
void expect_valid(PolicyCase& test, const PlannedSchedule& planned) {
  const PolicyRequest& request = test.request();
  const Schedule& schedule = planned.schedule;
  uint64_t bytes = 0;
  size_t phases = 0;
  for (const ChunkSchedule& chunk : schedule.chunks) {
    bytes += chunk.bytes;
    phases += chunk.phases.size();
    uint32_t scattered = 0;
    uint32_t gathered = 0;
    for (const PhaseChoice& phase : chunk.phases) {
      uint32_t& half = phase.kind == PhaseKind::kReduceScatter ? scattered : gathered;
      EXPECT_EQ(half >> phase.dimension & 1, 0u);
      EXPECT_TRUE(phase.kind == PhaseKind::kAllGather || gathered == 0);
      half |= uint32_t{1} << phase.dimension;
    }
    const uint32_t all = (uint32_t{1} << request.dimensions.size()) - 1;
    EXPECT_EQ(scattered, request.reduce_scatter ? all : 0);
    EXPECT_EQ(gathered, request.all_gather ? all : 0);
    const bool last = &chunk == &schedule.chunks.back();
    EXPECT_TRUE(last || chunk.bytes % request.granule == 0);
  }
  EXPECT_EQ(bytes, request.bytes);
  Simulation simulation;
  std::array<uint8_t, 256> links{};
  std::vector<std::span<const PhaseId>> orders;
  for (const DimensionOrder& order : schedule.orders) {
    links[order.dimension] = static_cast<uint8_t>(orders.size());
    simulation.in_flight.push_back(order.in_flight);
    orders.emplace_back(order.order);
  }
  for (const ChunkSchedule& chunk : schedule.chunks) test.model().append(chunk, links, simulation);
  const SimulationResult replayed = simulate_in_order(simulation, orders);
  EXPECT_TRUE(replayed.finished);
  EXPECT_EQ(replayed.time_ticks, planned.time_ticks);
  EXPECT_EQ(phases, simulation.phases.size());
}

void choose_halves(Rng& rng, PolicyRequest& request) {
  const uint64_t halves = rng.below(4);
  request.reduce_scatter = halves != 0;
  request.all_gather = halves != 1;
}

void expect_never_worse(PolicyCase& test) {
  PolicyRequest& request = test.request();
  request.most_search_phases = 3000;
  const Portfolio portfolio = plan_portfolio(request);
  ASSERT_NO_FATAL_FAILURE(expect_valid(test, portfolio.best));
  const uint64_t time_ticks = portfolio.best.time_ticks;
  EXPECT_LE(portfolio.bound_ticks, time_ticks) << to_text(test.topology());
  EXPECT_LE(time_ticks, plan_baseline(request).time_ticks);
  if (request.dimensions.size() == 1) return;
  EXPECT_LE(time_ticks, plan_lp_split(request).time_ticks);
  for (const PriorityRule intra : {first_in_first_out, smallest_chunk_first}) {
    request.intra = intra;
    EXPECT_LE(time_ticks, plan_themis(request).time_ticks);
  }
}

TEST(Auto, IsNeverWorseThanItsMembersNorBetterThanTheBoundInThePapersModel) {
  Rng rng(21);
  for (int i = 0; i < 1500; ++i) {
    const Topology topology = random_topology(rng, 1, 4);
    const auto chunks = static_cast<uint32_t>(1 + rng.below(rng.below(2) == 0 ? 8 : 40));
    PolicyCase test = paper_case(topology, 1000 + rng.below(uint64_t{1} << (10 + rng.below(20))), chunks);
    choose_halves(rng, test.request());
    expect_never_worse(test);
    ASSERT_FALSE(testing::Test::HasFailure()) << "case " << i << "\n" << to_text(topology);
  }
}

TEST(Auto, IsNeverWorseThanItsMembersNorBetterThanTheBoundInTheLibrarysModel) {
  Rng rng(22);
  for (int i = 0; i < 1000; ++i) {
    PolicyCase test(random_topology(rng, 1, 5), nullptr);
    const auto chunks = static_cast<uint32_t>(1 + rng.below(rng.below(2) == 0 ? 8 : 40));
    test.cut(rng.below(uint64_t{1} << (1 + rng.below(32))), chunks, 1 + rng.below(2) * 63);
    choose_halves(rng, test.request());
    expect_never_worse(test);
    ASSERT_FALSE(testing::Test::HasFailure()) << "case " << i << "\n" << to_text(test.topology());
  }
}

// Systems with every r >= 1 (study/advice.h), which no policy can balance, and systems in which latency dominates.
TEST(Auto, IsNoSlowerThanTheBaselineWhereNothingCanBeBalanced) {
  Rng rng(23);
  for (int i = 0; i < 300; ++i) {
    Topology topology = random_topology(rng, 2, 4);
    uint64_t mbps = 4'000'000;
    for (Dimension& each : topology.dimensions) {
      each.bandwidth_mbps = mbps;
      mbps = mbps / static_cast<uint64_t>(2 * each.size) / 1000 * 1000 + 1000;
      each.latency_ns = i % 2 == 0 ? 100 : 1'000'000;
    }
    PolicyCase test = paper_case(topology, i % 2 == 0 ? uint64_t{64} << 20 : 100'000, 8);
    test.request().most_search_phases = 3000;
    const uint64_t baseline = plan_baseline(test.request()).time_ticks;
    EXPECT_LE(plan_auto(test.request()).time_ticks, baseline) << to_text(topology);
  }
}

TEST(Auto, ChoosesTheSameWhateverWasPlannedBefore) {
  std::vector<PlannedSchedule> first;
  for (const bool backwards : {false, true}) {
    for (int i = 0; i < 24; ++i) {
      const int index = backwards ? 23 - i : i;
      const PaperSystem& system = paper_systems()[static_cast<size_t>(index % 6)];
      PolicyCase test = paper_case(to_topology(system), uint64_t{50} << 20, uint32_t{4} << index / 6);
      test.request().most_search_phases = 20'000;
      // The model has answered other requests before.
      if (backwards) plan_themis(test.request());
      PlannedSchedule planned = plan_auto(test.request());
      if (!backwards) {
        first.push_back(std::move(planned));
        continue;
      }
      EXPECT_EQ(planned.schedule, first[static_cast<size_t>(index)].schedule) << system.name;
      EXPECT_EQ(planned.time_ticks, first[static_cast<size_t>(index)].time_ticks) << system.name;
    }
  }
}

TEST(Auto, ChoosesTheNumberOfChunksByPredictedTime) {
  const Topology topology = to_topology(paper_systems()[2]);
  static constexpr uint64_t kFewest = 1 << 20;
  size_t most = 0;
  for (const uint64_t bytes : {uint64_t{1} << 16, uint64_t{1} << 26, uint64_t{1} << 32}) {
    PolicyCase test(topology, nullptr);
    test.cut(bytes, 1, 64 * 1024);
    test.request().most_chunks = 64;
    test.request().fewest_bytes = kFewest;
    const Portfolio portfolio = plan_portfolio(test.request());
    const std::vector<ChunkSchedule>& chunks = portfolio.best.schedule.chunks;
    EXPECT_LE(chunks.size(), std::max<uint64_t>(1, bytes / kFewest));
    for (const ChunkSchedule& chunk : chunks) EXPECT_TRUE(chunks.size() == 1 || chunk.bytes >= kFewest);
    for (const Candidate& each : portfolio.candidates) EXPECT_LE(portfolio.best.time_ticks, each.time_ticks);
    most = std::max(most, chunks.size());
  }
  EXPECT_GE(most, 4u);
}

TEST(Auto, SearchesNoMoreThanItMayGain) {
  Topology topology;
  for (const int32_t size : {4, 2}) {
    topology.dimensions.push_back(paper_dimension(size, DimensionKind::kSwitch, 80, 1000));
  }
  uint64_t previous = 0;
  for (const uint64_t bytes : {uint64_t{8} << 10, uint64_t{1} << 20, uint64_t{64} << 20}) {
    PolicyCase test(topology, nullptr);
    test.cut(bytes, 4, 64);
    const Portfolio portfolio = plan_portfolio(test.request());
    EXPECT_GE(portfolio.searched_phases, previous);
    previous = portfolio.searched_phases;
    if (bytes == uint64_t{8} << 10) {
      EXPECT_LT(portfolio.searched_phases, 10'000u);
    }
    // The alternative is faster than any schedule that could be found.
    test.request().to_beat_ticks = portfolio.bound_ticks;
    EXPECT_EQ(plan_portfolio(test.request()).searched_phases, 0u);
  }
}

TEST(Auto, PlansAMillionRanksLikeAThousand) {
  for (const int32_t size : {4, 8, 32}) {
    Topology topology;
    for (uint64_t d = 0; d < 4; ++d) {
      topology.dimensions.push_back(paper_dimension(size, DimensionKind::kSwitch, 1600 >> d, 700));
    }
    PolicyCase test(topology, nullptr);
    test.cut(uint64_t{1} << 30, 64, 1);
    test.request().most_search_phases = 10'000;
    const Portfolio portfolio = plan_portfolio(test.request());
    EXPECT_LT(portfolio.searched_phases, 12'000u);
    ASSERT_NO_FATAL_FAILURE(expect_valid(test, portfolio.best));
  }
}

}  // namespace
}  // namespace auto_test
}  // namespace trestle
