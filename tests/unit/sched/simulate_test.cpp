// The model in exact integers: small cases with times computed by hand, costs of phases, predictions.
#include <gtest/gtest.h>

#include "algorithms/catalog.h"
#include "sched/model/cost.h"
#include "sched/model/predict.h"
#include "sched/model/simulate.h"
#include "sched/policy/chunk_sizes.h"
#include "sched/policy/priority_rules.h"

namespace trestle {
namespace simulate_test {
namespace {

struct Builder {
  Simulation simulation;
  explicit Builder(std::vector<uint32_t> in_flight) { simulation.in_flight = std::move(in_flight); }
  Builder& chunk(const std::vector<SimulatedPhase>& phases) {
    simulation.phases.insert(simulation.phases.end(), phases.begin(), phases.end());
    simulation.first.push_back(static_cast<uint32_t>(simulation.phases.size()));
    return *this;
  }
  SimulationResult ordered(const std::vector<std::vector<PhaseId>>& orders) const {
    return simulate_in_order(simulation, std::vector<std::span<const PhaseId>>(orders.begin(), orders.end()));
  }
};

SimulatedPhase on(uint8_t link, uint64_t link_ticks, uint64_t delay_ticks) {
  SimulatedPhase phase;
  phase.link = link;
  phase.link_ticks = link_ticks;
  phase.delay_ticks = delay_ticks;
  return phase;
}

PriorityKey shortest_first(const SimulatedPhase& phase, const SimulatedPhase*) {
  return {phase.link_ticks, 0};
}

TEST(Simulate, DelayOverlapsWithTheNextTransfer) {
  EXPECT_EQ(
      simulate(Builder({2}).chunk({on(0, 10, 3)}).chunk({on(0, 10, 3)}).simulation, first_in_first_out).time_ticks,
      23u);
  EXPECT_EQ(
      simulate(Builder({1}).chunk({on(0, 10, 3)}).chunk({on(0, 10, 3)}).simulation, first_in_first_out).time_ticks,
      26u);
}

TEST(Simulate, PhasesOfAChunkFollowEachOther) {
  Builder b({2, 2});
  for (int i = 0; i < 2; ++i) b.chunk({on(0, 10, 1), on(1, 4, 2)});
  // link 0: 0..10, 10..20; link 1: 11..15, 21..25, complete at 27
  const SimulationResult result = simulate(b.simulation, first_in_first_out);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.time_ticks, 27u);
  EXPECT_EQ(result.orders[1], (std::vector<PhaseId>{{0, 1}, {1, 1}}));
}

TEST(Simulate, LinkChoosesAfterAllArrivalsOfTheInstant) {
  Builder b({8, 8});
  b.chunk({on(0, 10, 0)}).chunk({on(0, 20, 0)}).chunk({on(1, 10, 0), on(0, 1, 0)});
  const SimulationResult shortest = simulate(b.simulation, shortest_first);
  EXPECT_EQ(shortest.orders[0], (std::vector<PhaseId>{{0, 0}, {2, 1}, {1, 0}}));
  EXPECT_EQ(shortest.time_ticks, 31u);
  const SimulationResult fifo = simulate(b.simulation, first_in_first_out);
  EXPECT_EQ(fifo.orders[0], (std::vector<PhaseId>{{0, 0}, {1, 0}, {2, 1}}));
  EXPECT_EQ(fifo.time_ticks, 31u);
}

TEST(Simulate, EqualArrivalsGoByChunk) {
  Builder b({8, 8});
  b.chunk({on(1, 5, 5), on(0, 1, 0)}).chunk({on(0, 10, 0), on(0, 1, 0)});
  // at 10 both chunks arrive at link 0
  EXPECT_EQ(simulate(b.simulation, first_in_first_out).orders[0], (std::vector<PhaseId>{{1, 0}, {0, 1}, {1, 1}}));
}

TEST(Simulate, OrdersAreEnforced) {
  Builder b({2});
  b.chunk({on(0, 10, 3)}).chunk({on(0, 4, 3)});
  EXPECT_EQ(b.ordered({{{1, 0}, {0, 0}}}).time_ticks, 17u);
  EXPECT_EQ(b.ordered({{{0, 0}, {1, 0}}}).time_ticks, 17u);
  // A link may stay idle for the first phase of its order: chunk 1 waits for 0.1, which arrives at 12.
  Builder idle({2, 2});
  idle.chunk({on(0, 12, 0), on(1, 5, 0)}).chunk({on(1, 7, 0)});
  EXPECT_EQ(idle.ordered({{{0, 0}}, {{0, 1}, {1, 0}}}).time_ticks, 24u);
  EXPECT_EQ(idle.ordered({{{0, 0}}, {{1, 0}, {0, 1}}}).time_ticks, 17u);
}

TEST(Simulate, OrdersThatWaitForEachOtherDoNotFinish) {
  Builder b({2, 2});
  b.chunk({on(0, 1, 0), on(1, 1, 0)}).chunk({on(1, 1, 0), on(0, 1, 0)});
  EXPECT_FALSE(b.ordered({{{1, 1}, {0, 0}}, {{0, 1}, {1, 0}}}).finished);
  EXPECT_TRUE(b.ordered({{{0, 0}, {1, 1}}, {{1, 0}, {0, 1}}}).finished);
}

TEST(Simulate, SharedResourcesAreOccupiedOneAtATime) {
  Builder b({1, 1});
  for (const uint8_t link : {uint8_t{0}, uint8_t{1}}) {
    SimulatedPhase phase = on(link, 4, 1);
    phase.resource = 0;
    phase.resource_ticks = 10;
    b.chunk({phase});
  }
  EXPECT_EQ(simulate(b.simulation, first_in_first_out).time_ticks, 21u);
  b.simulation.phases[1].resource = 1;
  EXPECT_EQ(simulate(b.simulation, first_in_first_out).time_ticks, 11u);
}

TEST(Simulate, NothingToDoTakesNoTime) {
  const SimulationResult result = simulate(Simulation{}, first_in_first_out);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.time_ticks, 0u);
}

// 1 ns per byte, 1 us per step on dimension 1; 2 ns per byte, 5 us per step on dimension 2.
Topology grid_4x2() {
  Topology topology;
  topology.dimensions.resize(2);
  topology.dimensions[0] = {4, DimensionKind::kSwitch, 8000, 1000, TransportKind::kShm, "", "", 0};
  topology.dimensions[1] = {2, DimensionKind::kSwitch, 4000, 5000, TransportKind::kTcp, "", "", 0};
  return topology;
}

uint16_t index_of(std::string_view name) {
  for (uint16_t a = 0; a < algorithms().size(); ++a) {
    if (algorithms()[a].name == name) return a;
  }
  return 0;
}

TEST(RailCost, NominalWhereTheTopologySaysNothing) {
  Topology topology;
  topology.dimensions.resize(3);
  topology.dimensions[0].transport = TransportKind::kLoopback;
  topology.dimensions[1].transport = TransportKind::kShm;
  topology.dimensions[2].transport = TransportKind::kTcp;
  const RailCost loopback = rail_cost(topology, 0);
  const RailCost shm = rail_cost(topology, 1);
  const RailCost tcp = rail_cost(topology, 2);
  EXPECT_LE(loopback.latency_ns, shm.latency_ns);
  EXPECT_LT(shm.latency_ns, tcp.latency_ns);
  EXPECT_GT(shm.bandwidth_mbps, tcp.bandwidth_mbps);
  const RailCost flat = rail_cost(topology, kFlat);
  EXPECT_EQ(flat.latency_ns, tcp.latency_ns);
  EXPECT_EQ(flat.bandwidth_mbps, tcp.bandwidth_mbps);
  EXPECT_EQ(flat.message_ns, tcp.message_ns);
  topology.dimensions[2].transport = TransportKind::kAuto;
  EXPECT_EQ(rail_cost(topology, 2).latency_ns, tcp.latency_ns);
  topology.dimensions[2].latency_ns = 7;
  topology.dimensions[2].bandwidth_mbps = 9;
  EXPECT_EQ(rail_cost(topology, 2).latency_ns, 7u);
  EXPECT_EQ(rail_cost(topology, 2).bandwidth_mbps, 9u);
}

uint64_t phases_ns(const Schedule& schedule, const Topology& topology) {
  return (predict_by_phases_ps(schedule, topology) + 999) / 1000;
}

TEST(Predict, RingAllGatherByHand) {
  const Topology topology = grid_4x2();
  const uint64_t message_ns = rail_cost(topology, 0).message_ns;
  const PhaseChoice ring{0, PhaseKind::kAllGather, index_of("ring")};
  Schedule schedule;
  schedule.bytes = 4 << 20;
  schedule.chunks = {{4 << 20, {ring}}};
  schedule.orders = {{0, 1, {{0, 0}}}};
  // 3/4 of 4 MiB at 1 ns per byte, 3 messages, 3 steps of 1 us
  EXPECT_EQ(phases_ns(schedule, topology), (3u << 20) + 3 * message_ns + 3000);
  // Two halves, both in flight: the delay of the first one is hidden.
  schedule.chunks = {{2 << 20, {ring}}, {2 << 20, {ring}}};
  schedule.orders = {{0, 2, {{0, 0}, {1, 0}}}};
  EXPECT_EQ(phases_ns(schedule, topology), (3u << 20) + 6 * message_ns + 3000);
  schedule.orders[0].in_flight = 1;
  EXPECT_EQ(phases_ns(schedule, topology), (3u << 20) + 6 * message_ns + 6000);
}

TEST(Predict, BytesShrinkAndGrowAlongTheDimensions) {
  const Topology topology = grid_4x2();
  const uint16_t ring = index_of("ring");
  const uint64_t m1 = rail_cost(topology, 0).message_ns;
  const uint64_t m2 = rail_cost(topology, 1).message_ns;
  Schedule gather;
  gather.bytes = 8 << 20;
  gather.chunks = {{8 << 20, {{1, PhaseKind::kAllGather, ring}, {0, PhaseKind::kAllGather, ring}}}};
  gather.orders = {{0, 1, {{0, 1}}}, {1, 1, {{0, 0}}}};
  // dimension 2: 1 of 2 MiB at 2 ns per byte; dimension 1: 6 of 8 MiB at 1 ns per byte
  EXPECT_EQ(phases_ns(gather, topology), (2u << 20) + m2 + 5000 + (6u << 20) + 3 * m1 + 3000);

  CostModel model(topology);
  const std::vector<PhaseChoice> all = {{0, PhaseKind::kReduceScatter, ring},
                                        {1, PhaseKind::kReduceScatter, ring},
                                        {1, PhaseKind::kAllGather, ring},
                                        {0, PhaseKind::kAllGather, ring}};
  PhaseWalk walk(topology, 8 << 20, all);
  const uint64_t expected[] = {1, 4, 4, 1};
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(walk.next(all[i]).divisor, expected[i]) << i;
}

TEST(Predict, FollowsTheCatalogForEveryAlgorithm) {
  const Topology topology = grid_4x2();
  constexpr uint64_t kBytes = 3 << 10;
  for (uint16_t a = 0; a < algorithms().size(); ++a) {
    for (const PhaseKind kind : {PhaseKind::kReduceScatter, PhaseKind::kAllReduce, PhaseKind::kReduce,
                                 PhaseKind::kBroadcast, PhaseKind::kAllToAll}) {
      for (const uint8_t dimension : {uint8_t{0}, uint8_t{1}, kFlat}) {
        const int32_t size = topology.group_size(dimension);
        if (!algorithms()[a].serves(kind, size)) continue;
        const AlgorithmCost cost = algorithms()[a].cost(kind, size);
        const RailCost rail = rail_cost(topology, dimension);
        const auto part_ps = [&](uint64_t num, uint64_t den, uint64_t mbps) {
          return (kBytes * num * 8'000'000 + den * mbps - 1) / (den * mbps);
        };
        // Copies the part that stays.
        const bool regroups = kind == PhaseKind::kAllToAll && dimension != kFlat;
        const uint64_t sent_ps = part_ps(cost.sent_num, cost.sent_den, rail.bandwidth_mbps);
        const uint64_t time_ps = sent_ps + (cost.converges ? sent_ps / 1000 * rail.converging_permille : 0) +
                                 part_ps(cost.reduced_num, cost.reduced_den, rail.reduce_mbps) +
                                 (regroups ? part_ps(1, static_cast<uint64_t>(size), rail.reduce_mbps) : 0) +
                                 500 * cost.messages * rail.message_ns + 1000 * cost.steps * rail.latency_ns;
        Schedule schedule;
        schedule.bytes = kBytes;
        schedule.chunks = {{kBytes, {{dimension, kind, a}}}};
        schedule.orders = {{dimension, 1, {{0, 0}}}};
        EXPECT_EQ(phases_ns(schedule, topology), (time_ps + 999) / 1000) << algorithms()[a].name << to_string(kind);
      }
    }
  }
}

TEST(Predict, SharedResourceLimitsDimensionsThatNameIt) {
  Topology topology = grid_4x2();
  const uint16_t ring = index_of("ring");
  Schedule schedule;
  schedule.bytes = 4 << 20;
  schedule.chunks = {{4 << 20, {{0, PhaseKind::kAllGather, ring}}}};
  schedule.orders = {{0, 1, {{0, 0}}}};
  topology.dimensions[0].shared_resource = "cpu";
  topology.dimensions[0].shared_ps_per_byte = 5000;
  EXPECT_EQ(phases_ns(schedule, topology), 5 * (3u << 20) + 3000);
}

// What several senders lose at a port is sent and read again: it costs the shared resource as much as the link.
TEST(Predict, LossesOfConvergingSendersCostTheSharedResource) {
  Topology topology;
  Dimension& dimension = topology.dimensions.emplace_back();
  dimension.size = 4;
  dimension.transport = TransportKind::kTcp;
  dimension.latency_ns = 0;
  dimension.shared_resource = "cpu";
  dimension.shared_ps_per_byte = 5000;
  const uint64_t permille = rail_cost(topology, 0).converging_permille;
  ASSERT_GT(permille, 0u);
  constexpr uint64_t kSent_ps = uint64_t{5000} * (3 << 20);  // three quarters
  for (const std::string_view name : {"ring", "direct", "hd"}) {
    const uint16_t algorithm = index_of(name);
    const bool converges = algorithms()[algorithm].cost(PhaseKind::kAllGather, 4).converges;
    EXPECT_EQ(converges, name != "ring");
    Schedule schedule;
    schedule.bytes = 4 << 20;
    schedule.chunks = {{4 << 20, {{0, PhaseKind::kAllGather, algorithm}}}};
    schedule.orders = {{0, 1, {{0, 0}}}};
    const uint64_t expected_ps = kSent_ps + (converges ? kSent_ps / 1000 * permille : 0);
    EXPECT_EQ(phases_ns(schedule, topology), (expected_ps + 999) / 1000) << name;
  }
}

TEST(PredictDeathTest, RefusesSchedulesThatCannotRun) {
  const Topology topology = grid_4x2();
  Schedule schedule;
  schedule.bytes = 1024;
  schedule.chunks = {{1024, {{0, PhaseKind::kAllGather, index_of("ring")}}}};
  schedule.orders = {{0, 1, {}}};
  EXPECT_DEATH(predict_ns(schedule, topology), "each phase once");
}

TEST(EqualChunks, Sizes) {
  using Sizes = std::vector<uint64_t>;
  EXPECT_EQ(equal_chunks(1 << 20, 4, 4, 8, false), Sizes(4, 1 << 18));
  EXPECT_EQ(equal_chunks(0, 4, 4, 8, false), Sizes{0});
  EXPECT_EQ(equal_chunks(8, 4, 4, 8, false), (Sizes{4, 4}));
  EXPECT_EQ(equal_chunks(1000, 1, 4, 8, false), Sizes{1000});
  EXPECT_EQ(equal_chunks(1000, 3, 4, 8, false), (Sizes{384, 320, 296}));  // in cache lines
  EXPECT_EQ(equal_chunks(500, 3, 4, 8, false), (Sizes{192, 160, 148}));   // in elements of 8 blocks: 32 bytes
  EXPECT_EQ(equal_chunks(96, 2, 4, 8, true), (Sizes{64, 32}));            // slices of every block
  EXPECT_EQ(equal_chunks(100, 2, 4, 8, false), (Sizes{52, 48}));
}

TEST(EqualChunks, PartsAreWholeAlignedAndSumUp) {
  for (uint64_t bytes = 8; bytes < 1 << 22; bytes = bytes * 3 + 8) {
    for (const uint32_t count : {1u, 2u, 3u, 7u, 16u, 64u, 1000u}) {
      for (const uint32_t blocks : {1u, 3u, 8u}) {
        const auto sizes = equal_chunks(bytes * blocks, count, 8, blocks, true);
        ASSERT_LE(sizes.size(), count);
        uint64_t sum = 0;
        for (const uint64_t& size : sizes) {
          EXPECT_EQ(size % (uint64_t{8} * blocks), 0u);
          EXPECT_GT(size, 0u);
          sum += size;
          if (bytes / 64 < 4 * count || &size == &sizes.back()) continue;
          EXPECT_EQ(size % (uint64_t{64} * blocks), 0u);
        }
        ASSERT_EQ(sum, bytes * blocks);
        const bool alike = bytes / 8 >= 4 * count;
        EXPECT_TRUE(!alike || sizes.front() / 5 * 4 <= sizes[sizes.size() / 2]);
      }
    }
  }
}

}  // namespace
}  // namespace simulate_test
}  // namespace trestle
