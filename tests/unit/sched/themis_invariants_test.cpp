// Properties of every schedule in the paper's model, on seeded random systems, for every policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "study/paper.h"
#include "support/grids.h"

namespace trestle {
namespace themis_invariants_test {
namespace {

Topology random_system(Rng& rng) {
  Topology topology;
  for (uint64_t d = 0, n = 1 + rng.below(4); d < n; ++d) {
    Dimension& dimension = topology.dimensions.emplace_back();
    dimension.size = static_cast<int32_t>(2 + rng.below(8));
    dimension.kind = static_cast<DimensionKind>(rng.below(3));
    // Round bandwidths cause ties, odd ones cause long fractions.
    dimension.bandwidth_mbps = rng.below(4) != 0 ? 100'000 * (1 + rng.below(16)) : 1 + rng.below(400'000);
    if (rng.below(4) != 0) dimension.latency_ns = rng.below(2) * 100 * rng.below(30);
    dimension.in_network_reduction = dimension.kind == DimensionKind::kSwitch && rng.below(8) == 0;
    if (rng.below(6) == 0) {
      dimension.shared_resource = rng.below(2) != 0 ? "cpu" : "memory";
      dimension.shared_ps_per_byte = 1 + rng.below(40);
    }
  }
  return topology;
}

PaperCase random_case(Rng& rng) {
  static constexpr Collective kCollectives[] = {Collective::kAllReduce, Collective::kAllReduce,
                                                Collective::kReduceScatter, Collective::kAllGather};
  PaperCase result;
  result.topology = random_system(rng);
  result.collective = kCollectives[rng.below(std::size(kCollectives))];
  result.bytes = rng.below(2) != 0 ? uint64_t{1} << (10 + rng.below(18)) : 1 + rng.below(1 << 26);
  result.chunks = static_cast<uint32_t>(1 + rng.below(24));
  result.policy = policies()[rng.below(policies().size())].name;
  result.intra = rng.below(2) != 0 ? "scf" : "fifo";
  return result;
}

void expect_halves(const PaperCase& input, const PaperResult& result) {
  std::vector<uint8_t> all(result.topology.dimensions.size());
  std::iota(all.begin(), all.end(), uint8_t{0});
  uint64_t parts = 0;
  for (size_t k = 0; k < result.chunks.size(); ++k) {
    const ChunkSchedule& chunk = result.planned.schedule.chunks[k];
    parts += chunk.bytes;
    ASSERT_GT(chunk.bytes, 0u);
    // All reduce-scatter phases come before all all-gather phases. Each half has each dimension once.
    const auto gathers = [](const PhaseChoice& phase) { return phase.kind == PhaseKind::kAllGather; };
    ASSERT_TRUE(std::ranges::is_partitioned(chunk.phases, [&](const PhaseChoice& phase) { return !gathers(phase); }));
    for (const bool half : {false, true}) {
      std::vector<uint8_t> dimensions = half ? result.chunks[k].all_gather : result.chunks[k].reduce_scatter;
      const bool absent = input.collective == (half ? Collective::kReduceScatter : Collective::kAllGather);
      std::ranges::sort(dimensions);
      ASSERT_EQ(dimensions, absent ? std::vector<uint8_t>{} : all);
    }
  }
  ASSERT_EQ(parts, result.planned.schedule.bytes);
}

// The bytes do not depend on the order.
void expect_bytes(const PaperCase& input, const PaperResult& result) {
  double sent = 0;
  for (const PaperLink& link : result.links) sent += link.bytes;
  const double n = result.topology.ranks();
  const double s = static_cast<double>(input.bytes);
  const double once = input.collective == Collective::kAllGather ? s * (n - 1) : s * (n - 1) / n;
  const double wanted = input.collective == Collective::kAllReduce ? 2 * once : once;
  const bool reduces = std::ranges::any_of(result.topology.dimensions, &Dimension::in_network_reduction);
  if (reduces) {
    ASSERT_LE(sent, wanted * (1 + 1e-6));
  } else {
    ASSERT_NEAR(sent, wanted, result.exact ? 1e-9 * wanted : 1e-3 * wanted + 1);
  }
  ASSERT_LE(result.utilization, 1 + 1e-9);
  ASSERT_GE(result.time.ns(), result.ideal_time_ns * (1 - 1e-9));
}

void expect_timeline(const PaperResult& result) {
  const auto& chunks = result.planned.schedule.chunks;
  std::vector<std::vector<PaperPhase>> by_chunk(chunks.size());
  uint64_t last_ticks = 0;
  for (const PaperLink& link : result.links) {
    uint64_t free_ticks = 0;
    for (const PaperPhase& phase : link.started) {
      ASSERT_GE(phase.start_ticks, free_ticks) << "two phases on a link";
      ASSERT_GE(phase.left_ticks, phase.start_ticks);
      ASSERT_GE(phase.complete_ticks, phase.left_ticks);
      free_ticks = phase.left_ticks;
      last_ticks = std::max(last_ticks, phase.complete_ticks);
      by_chunk[phase.id.chunk].push_back(phase);
    }
  }
  ASSERT_EQ(last_ticks, result.time.ticks);
  for (size_t k = 0; k < chunks.size(); ++k) {
    ASSERT_EQ(by_chunk[k].size(), chunks[k].phases.size());
    std::ranges::sort(by_chunk[k], {}, [](const PaperPhase& phase) { return phase.id.stage; });
    uint64_t arrival_ticks = 0;
    for (uint32_t s = 0; s < by_chunk[k].size(); ++s) {
      ASSERT_EQ(by_chunk[k][s].id.stage, s);
      ASSERT_GE(by_chunk[k][s].start_ticks, arrival_ticks) << "a phase before the one it follows";
      arrival_ticks = by_chunk[k][s].complete_ticks;
    }
  }
}

TEST(ThemisInvariants, OfRandomSystems) {
  Rng rng(20210);
  int inexact = 0;
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    const PaperCase input = random_case(rng);
    auto result = run_paper(input);
    ASSERT_TRUE(result.ok()) << result.error().message;
    inexact += result.value().exact ? 0 : 1;
    expect_halves(input, result.value());
    expect_bytes(input, result.value());
    expect_timeline(result.value());
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(inexact, 120);
}

// All ranks plan alone, so results must depend only on the input, not on earlier plans.
TEST(ThemisInvariants, EqualResultsInAnyOrderOfRequests) {
  Rng rng(7);
  std::vector<PaperCase> cases;
  for (int i = 0; i < 40; ++i) cases.push_back(random_case(rng));
  std::vector<uint64_t> hashes;
  for (const PaperCase& input : cases) hashes.push_back(hash(run_paper(input).value().planned.schedule));
  std::vector<size_t> shuffled(cases.size());
  std::iota(shuffled.begin(), shuffled.end(), size_t{0});
  for (size_t i = shuffled.size(); i-- > 1;) std::swap(shuffled[i], shuffled[rng.below(i + 1)]);
  for (const size_t i : shuffled) EXPECT_EQ(hash(run_paper(cases[i]).value().planned.schedule), hashes[i]) << i;
}

Simulation simulation_of(const PaperResult& result, CostModel& model) {
  Simulation simulation;
  std::array<uint8_t, 256> links{};
  for (size_t l = 0; l < result.planned.schedule.orders.size(); ++l) {
    links[result.planned.schedule.orders[l].dimension] = static_cast<uint8_t>(l);
    simulation.in_flight.push_back(result.planned.schedule.orders[l].in_flight);
  }
  for (const ChunkSchedule& chunk : result.planned.schedule.chunks) model.append(chunk, links, simulation);
  return simulation;
}

// The order is enforced at run time, where no phase takes the predicted time. It must never deadlock.
TEST(ThemisInvariants, OrdersRunUnderAnyDelaysAndReplayToTheSameTime) {
  Rng rng(11);
  Simulator reused;
  for (int round = 0; round < 150; ++round) {
    const PaperCase input = random_case(rng);
    const PaperResult result = run_paper(input).value();
    CostModel model(result.topology, result.scale);
    Simulation simulation = simulation_of(result, model);
    std::vector<std::span<const PhaseId>> orders;
    for (const DimensionOrder& order : result.planned.schedule.orders) orders.emplace_back(order.order);
    const Simulator::Outcome replay = reused.run_in_order(simulation, orders);
    ASSERT_TRUE(replay.finished);
    ASSERT_EQ(replay.time_ticks, result.time.ticks);
    for (int jitter = 0; jitter < 4; ++jitter) {
      for (SimulatedPhase& phase : simulation.phases) {
        phase.link_ticks = rng.below(1000);
        phase.delay_ticks = rng.below(3) * rng.below(1000);
      }
      for (uint32_t& in_flight : simulation.in_flight) in_flight = static_cast<uint32_t>(1 + rng.below(3));
      const Simulator::Outcome outcome = reused.run_in_order(simulation, orders);
      ASSERT_TRUE(outcome.finished) << "orders that wait for each other";
      // A used simulator gives the same result as a new one.
      const SimulationResult fresh = simulate_in_order(simulation, orders);
      ASSERT_EQ(fresh.time_ticks, outcome.time_ticks);
    }
  }
}

TEST(Paper, SwitchesThatReduceSendLess) {
  PaperCase input;
  input.topology = grid_of({{4, 100'000, 500}, {8, 100'000, 500}});
  input.bytes = 1 << 20;
  input.chunks = 1;
  input.policy = "baseline";
  const PaperResult plain = run_paper(input).value();
  EXPECT_EQ(plain.links[0].bytes, 2 * 0.75 * (1 << 20));
  EXPECT_EQ(plain.latencies[0].ns(), 2 * 2 * 500);
  input.topology.dimensions[0].in_network_reduction = true;
  const PaperResult reducing = run_paper(input).value();
  EXPECT_EQ(reducing.links[0].bytes, 1 << 20);  // all data once
  EXPECT_EQ(reducing.latencies[0].ns(), 2 * 500);
  EXPECT_EQ(reducing.links[1].bytes, plain.links[1].bytes);
  EXPECT_LT(reducing.time.ns(), plain.time.ns());
  input.collective = Collective::kAllGather;
  EXPECT_EQ(run_paper(input).value().links[0].bytes, 3.0 * 8 * (1 << 20));  // the data of the other ranks
}

TEST(Paper, BadInputIsRefusedInWords) {
  PaperCase good;
  Dimension dimension;
  dimension.size = 4;
  dimension.bandwidth_mbps = 1000;
  good.topology.dimensions = {dimension, dimension};
  good.bytes = 1000;
  ASSERT_TRUE(run_paper(good).ok());
  const auto refusal = [&](auto change) {
    PaperCase bad = good;
    change(bad);
    const auto result = run_paper(bad);
    return result.ok() ? std::string("accepted") : result.error().message;
  };
  const auto says = [&](const std::string& message, const char* what) {
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  says(refusal([](PaperCase& c) { c.topology.dimensions[1].bandwidth_mbps = 0; }),
       "dimension 2: the paper's model needs");
  says(refusal([](PaperCase& c) { c.topology.dimensions[0].size = 0; }), "dimension 1: a size below 1");
  says(refusal([](PaperCase& c) { c.topology.dimensions.resize(9, c.topology.dimensions[0]); }), "at most 8");
  says(refusal([](PaperCase& c) {
         c.topology.dimensions.resize(1);
         c.topology.dimensions[0].size = 1;
       }),
       "one rank");
  says(refusal([](PaperCase& c) { c.bytes = 0; }), "no bytes");
  says(refusal([](PaperCase& c) { c.chunks = 0; }), "no chunks");
  says(refusal([](PaperCase& c) { c.bytes = UINT64_MAX / 2; }), "longer than the model can count");
  says(refusal([](PaperCase& c) { c.policy = "themes"; }),
       "'themes' is not a schedule policy; did you mean themis? There are baseline, themis");
  says(refusal([](PaperCase& c) { c.intra = "lifo"; }),
       "'lifo' is not a rule of priority; did you mean fifo? There are fifo, scf");
  says(refusal([](PaperCase& c) { c.collective = Collective::kBroadcast; }), "all-gather only");
  PaperCase dropped = good;
  dropped.topology.dimensions[0].size = 1;
  const PaperResult result = run_paper(dropped).value();
  EXPECT_EQ(result.topology.dimensions.size(), 1u);
  says(result.topology.reason, "dropped, because of size 1: dimension 1");
}

}  // namespace
}  // namespace themis_invariants_test
}  // namespace trestle
