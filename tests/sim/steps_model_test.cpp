// The model of steps against closed forms, and its invariants: bytes, order, independence of coarseness.
#include "sched/model/steps_model.h"
#include "sched/model/cost.h"
#include "support/grids.h"

#include <gtest/gtest.h>

namespace trestle {
namespace steps_model_test {
namespace {

constexpr uint64_t kPsPerNs = 1000;

uint16_t algorithm(std::string_view name) {
  return static_cast<uint16_t>(find_algorithm(name).value() - algorithms().data());
}

// One chunk over one dimension.
Schedule single(PhaseKind kind, std::string_view name, uint64_t bytes) {
  Schedule schedule;
  schedule.bytes = bytes;
  schedule.chunks = {{bytes, {{0, kind, algorithm(name)}}}};
  schedule.orders = {{0, 1, {{0, 0}}}};
  return schedule;
}

StepsOptions cut(uint32_t per_message) {
  StepsOptions options;
  options.segments.per_message = per_message;
  options.overheads = false;
  return options;
}

uint64_t time_ns(const Topology& topology, const Schedule& schedule, const StepsOptions& options) {
  const StepsResult result = StepsModel(topology, options).run(schedule);
  EXPECT_TRUE(result.finished);
  return (result.time_ps + kPsPerNs / 2) / kPsPerNs;
}

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(Alone, ARingOfWholeMessagesPaysItsLatencyInEveryStep) {
  const Topology topology = grid_of({{8, 8000, 500}});  // 1 ns per byte
  for (const PhaseKind kind : {PhaseKind::kReduceScatter, PhaseKind::kAllGather}) {
    EXPECT_EQ(time_ns(topology, single(kind, "ring", 8 * kMiB), cut(1)), 7 * (kMiB + 500));
  }
  EXPECT_EQ(time_ns(topology, single(PhaseKind::kAllReduce, "ring", 8 * kMiB), cut(1)), 14 * (kMiB + 500));
}

TEST(Alone, ARingOfSegmentsHidesAllLatenciesButTheLast) {
  const Topology topology = grid_of({{8, 8000, 500}});
  EXPECT_EQ(time_ns(topology, single(PhaseKind::kReduceScatter, "ring", 8 * kMiB), cut(32)), 7 * kMiB + 500);
  // If a step's other segments take less time than the latency, the link waits for the first one.
  const uint64_t bytes = 8 * 4096;
  const Topology far = grid_of({{8, 8000, 10'000}});
  EXPECT_EQ(time_ns(far, single(PhaseKind::kReduceScatter, "ring", bytes), cut(4)),
            6 * (10'000 + 1024) + 4096 + 10'000);
}

TEST(Alone, DirectIsOneStepAndHalvingHalves) {
  const Topology topology = grid_of({{8, 8000, 500}});
  EXPECT_EQ(time_ns(topology, single(PhaseKind::kAllGather, "direct", 8 * kMiB), cut(1)), 7 * kMiB + 500);
  EXPECT_EQ(time_ns(topology, single(PhaseKind::kReduceScatter, "hd", 8 * kMiB), cut(1)), 7 * kMiB + 3 * 500);
  EXPECT_EQ(time_ns(topology, single(PhaseKind::kAllGather, "hd", 8 * kMiB), cut(1)), 7 * kMiB + 3 * 500);
}

TEST(Alone, AWindowHoldsTheLinkUntilSegmentsArrive) {
  const Topology topology = grid_of({{2, 8000, 100'000}});
  StepsOptions options = cut(16);
  options.window = 1;
  // 16 segments of 64 KiB, one at a time.
  EXPECT_EQ(time_ns(topology, single(PhaseKind::kReduceScatter, "hd", 2 * kMiB), options), 16 * (65'536 + 100'000));
}

TEST(Alone, MessagesInTurnShareOneWindow) {
  const Topology topology = grid_of({{4, 8000, 100'000}});
  const Schedule schedule = single(PhaseKind::kAllToAll, "pairwise", 4 * kMiB);
  StepsOptions options = cut(8);
  options.window = 1;
  // 3 blocks in halves: 6 messages of 8 segments of 64 KiB, one at a time.
  EXPECT_EQ(time_ns(topology, schedule, options), 48 * (65'536 + 100'000));
  options.window = 2;
  // As one message of 48 segments: two arrive in the time that the first of them takes.
  EXPECT_EQ(time_ns(topology, schedule, options), 24 * (65'536 + 100'000) + 65'536);
  options.window = 8;
  EXPECT_EQ(time_ns(topology, schedule, options), 3 * kMiB + 100'000);
}

TEST(Alone, OverheadsAreThoseOfTheRail) {
  const Topology topology = grid_of({{4, 8000, 500}});
  StepsOptions options = cut(8);
  options.overheads = true;
  const RailCost rail = rail_cost(topology, 0);
  const uint64_t reduced_ns = 3 * kMiB * 8000 / rail.reduce_mbps;
  EXPECT_EQ(time_ns(topology, single(PhaseKind::kReduceScatter, "direct", 4 * kMiB), options),
            3 * kMiB + reduced_ns + 3 * 8 * rail.message_ns + 500);
}

TEST(Alone, PlansThatAreNoExchangeArePipelines) {
  const Topology topology = grid_of({{9, 8000, 500}});
  for (const Algorithm& row : algorithms()) {
    for (int kind = 0; kind < kPhaseKinds; ++kind) {
      const auto phase = static_cast<PhaseKind>(kind);
      if (!row.serves(phase, 9)) continue;
      const AlgorithmCost cost = row.cost(phase, 9);
      const uint64_t least_ns = 9 * kMiB * cost.sent_num / cost.sent_den + 500;
      const uint64_t most_ns = 9 * kMiB * cost.sent_num / cost.sent_den * cost.steps + 500 * cost.steps;
      const uint64_t ns = time_ns(topology, single(phase, row.name, 9 * kMiB), cut(8));
      EXPECT_GE(ns, least_ns) << row.name << " " << to_string(phase);
      EXPECT_LE(ns, most_ns) << row.name << " " << to_string(phase);
    }
  }
}

// A hierarchical all-reduce of `chunks` equal chunks. Each dimension has its phases in the order of chunks, all RS
// first.
Schedule hierarchical(const std::vector<const char*>& names, uint64_t bytes, uint32_t chunks, uint32_t in_flight) {
  Schedule schedule;
  schedule.bytes = bytes;
  const auto dims = static_cast<uint32_t>(names.size());
  for (uint32_t d = 0; d < dims; ++d) schedule.orders.push_back({static_cast<uint8_t>(d), in_flight, {}});
  for (uint32_t k = 0; k < chunks; ++k) {
    ChunkSchedule& chunk = schedule.chunks.emplace_back();
    chunk.bytes = bytes / chunks;
    for (uint32_t stage = 0; stage < 2 * dims; ++stage) {
      const auto d = static_cast<uint8_t>(stage < dims ? stage : 2 * dims - 1 - stage);
      chunk.phases.push_back(
          {d, stage < dims ? PhaseKind::kReduceScatter : PhaseKind::kAllGather, algorithm(names[d])});
    }
  }
  for (const bool gather : {false, true}) {
    for (uint32_t k = 0; k < chunks; ++k) {
      for (uint32_t d = 0; d < dims; ++d) schedule.orders[d].order.push_back({k, gather ? 2 * dims - 1 - d : d});
    }
  }
  return schedule;
}

TEST(Schedules, KeepBytesOrderAndOneSegmentPerLink) {
  const Topology topology = grid_of({{4, 80'000, 700}, {8, 40'000, 700}, {4, 20'000, 1700}});
  const Schedule schedule = hierarchical({"ring", "direct", "hd"}, 64 * kMiB, 8, 3);
  const StepsResult result = StepsModel(topology, cut(16)).run(schedule);
  ASSERT_TRUE(result.finished);
  const uint64_t expected[] = {2 * 64 * kMiB * 3 / 4, 2 * 16 * kMiB * 7 / 8, 2 * 2 * kMiB * 3 / 4};
  for (size_t l = 0; l < 3; ++l) {
    EXPECT_EQ(result.links[l].bytes, expected[l]);
    EXPECT_NEAR(static_cast<double>(result.links[l].busy_ps),
                static_cast<double>(expected[l]) * 8e6 / static_cast<double>(topology.dimensions[l].bandwidth_mbps),
                1e3);
    EXPECT_LE(result.links[l].busy_ps, result.time_ps);
    const std::vector<PhaseId>& order = schedule.orders[l].order;
    for (size_t i = 1; i < order.size(); ++i) {
      EXPECT_LE(result.phases[order[i - 1].chunk][order[i - 1].stage].start_ps,
                result.phases[order[i].chunk][order[i].stage].start_ps);
    }
  }
  for (const auto& chunk : result.phases) {
    for (size_t stage = 1; stage < chunk.size(); ++stage) EXPECT_GE(chunk[stage].start_ps, chunk[stage - 1].end_ps);
  }
}

TEST(Schedules, SayWhenTheirOrdersWaitForEachOther) {
  const Topology topology = grid_of({{2, 8000, 10}, {2, 8000, 10}});
  Schedule schedule = hierarchical({"ring", "ring"}, kMiB, 2, 2);
  std::swap(schedule.orders[0].order.front(), schedule.orders[0].order.back());
  EXPECT_FALSE(StepsModel(topology, cut(2)).run(schedule).finished);
}

TEST(Schedules, OfDimensionsThatShareAResourceTakeTurnsOnIt) {
  Topology topology = grid_of({{4, 80'000, 100}, {4, 80'000, 100}});
  for (Dimension& d : topology.dimensions) {
    d.shared_resource = "memory";
    d.shared_ps_per_byte = 200;
  }
  const Schedule schedule = hierarchical({"ring", "ring"}, 16 * kMiB, 8, 2);
  const StepsResult result = StepsModel(topology, cut(16)).run(schedule);
  ASSERT_TRUE(result.finished);
  EXPECT_GE(result.time_ps, (result.links[0].bytes + result.links[1].bytes) * 200);
}

TEST(Coarseness, HardlyMattersForLongChains) {
  // 300 steps, with latencies that are hidden and latencies that are not.
  for (const uint64_t latency_ns : {100u, 3'000u, 40'000u}) {
    const Topology topology = grid_of({{4, 80'000, 700}, {301, 40'000, latency_ns}});
    const Schedule schedule = hierarchical({"direct", "ring"}, 301 * 4 * 65'536, 8, 4);
    StepsOptions fine = cut(8);
    fine.most_messages = 1000;
    const auto exact = static_cast<double>(time_ns(topology, schedule, fine));
    EXPECT_NEAR(static_cast<double>(time_ns(topology, schedule, cut(8))) / exact, 1.0, 0.02) << latency_ns;
  }
}

// Limited by the link, by two peers under way, by the window.
TEST(Coarseness, HardlyMattersForMessagesInTurn) {
  for (const int32_t size : {64, 66, 101, 130, 256}) {
    for (const uint64_t latency_ns : {1'000u, 30'000u, 200'000u, 1'000'000u}) {
      for (const uint32_t window : {0u, 8u}) {
        const Topology topology = grid_of({{size, 10'000, latency_ns}});
        const Schedule schedule = single(PhaseKind::kAllToAll, "pairwise", static_cast<uint64_t>(size) * 131'072);
        StepsOptions coarse = cut(8);
        coarse.window = window;
        StepsOptions fine = coarse;
        fine.most_messages = 1000;
        const auto exact = static_cast<double>(time_ns(topology, schedule, fine));
        EXPECT_NEAR(static_cast<double>(time_ns(topology, schedule, coarse)) / exact, 1.0, 0.03)
            << size << " ranks, " << latency_ns << " ns, window " << window << ": " << exact;
      }
    }
  }
}

TEST(Coarseness, OfSegmentsKeepsTheTotalWhereLinksAreBusy) {
  const Topology topology = grid_of({{16, 160'000, 700}, {8, 80'000, 700}});
  const Schedule schedule = hierarchical({"hd", "ring"}, 256 * kMiB, 16, 4);
  StepsOptions coarse = cut(32);
  coarse.most_segments = 8;
  const auto exact = static_cast<double>(time_ns(topology, schedule, cut(32)));
  EXPECT_NEAR(static_cast<double>(time_ns(topology, schedule, coarse)) / exact, 1.0, 0.01);
}

TEST(Size, OfTheGroupCostsNoMoreThanItsSteps) {
  const Topology topology = grid_of({{16, 1'200'000, 700}, {64, 800'000, 1700}, {128, 400'000, 1700}});
  const Schedule schedule = hierarchical({"hd", "hd", "hd"}, 1000 * kMiB, 64, 4);
  const uint64_t ideal_ns = 2 * 1000 * kMiB * 15 / 16 * 8 / 1200;
  EXPECT_GE(time_ns(topology, schedule, cut(32)), ideal_ns);
  EXPECT_LE(time_ns(topology, schedule, cut(32)), 2 * ideal_ns);
}

}  // namespace
}  // namespace steps_model_test
}  // namespace trestle
