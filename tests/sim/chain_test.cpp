// The pipelined chain in the model of steps and in the engine over simulated links. With s segments of equal length the
// last of n ranks has all data after n - 2 + s times the time of a segment.
#include <gtest/gtest.h>

#include "sched/model/steps_model.h"
#include "sim/cluster.h"
#include "support/grids.h"

namespace trestle {
namespace chain_test {
namespace {

constexpr uint64_t kBytes = uint64_t{1} << 20;
constexpr uint64_t kLatency_ns = 500;

Topology line(int32_t ranks) {
  return grid_of({{ranks, 8000, kLatency_ns}});  // 1 ns per byte
}

Schedule by_chain(PhaseKind kind, std::string_view name) {
  const auto algorithm = static_cast<uint16_t>(find_algorithm(name).value() - algorithms().data());
  Schedule schedule;
  schedule.bytes = kBytes;
  schedule.chunks = {{kBytes, {{0, kind, algorithm}}}};
  schedule.orders = {{0, 1, {{0, 0}}}};
  return schedule;
}

uint64_t expected_ns(uint64_t ranks, uint64_t segments) {
  return (ranks - 2 + segments) * (kBytes / segments) + (ranks - 1) * kLatency_ns;
}

TEST(Chain, PassesSegmentsOnWhileOthersCome) {
  for (const int32_t ranks : {2, 3, 8}) {
    const Topology topology = line(ranks);
    for (const uint32_t segments : {1u, 2u, 4u, 16u, 64u}) {
      StepsOptions model;
      model.segments.per_message = segments;
      model.overheads = false;
      SimOptions engine;
      engine.links = sim_links(topology, false);
      engine.segments_per_message = segments;
      engine.data = false;
      for (const PhaseKind kind : {PhaseKind::kBroadcast, PhaseKind::kReduce}) {
        SimCall call;
        call.request.collective = kind == PhaseKind::kReduce ? Collective::kReduce : Collective::kBroadcast;
        call.request.count = kBytes / 4;
        call.schedule = by_chain(kind, "chain");
        call.buffers.resize(static_cast<size_t>(ranks));
        SCOPED_TRACE(std::string(to_string(kind)) + ", " + std::to_string(ranks) + " ranks, " +
                     std::to_string(segments) + " segments");
        const uint64_t expected = expected_ns(static_cast<uint64_t>(ranks), segments);
        EXPECT_EQ(StepsModel(topology, model).run(call.schedule).time_ps / 1000, expected);
        const auto run = SimCluster(topology, engine).run({call});
        ASSERT_TRUE(run.ok()) << run.error().message;
        EXPECT_EQ(static_cast<uint64_t>(run.value()), expected);
      }
    }
  }
}

TEST(Chain, IsTheRingsPlan) {
  for (const PhaseKind kind : {PhaseKind::kBroadcast, PhaseKind::kReduce}) {
    for (int32_t me = 0; me < 5; ++me) {
      const PlanRequest request{.kind = kind, .group_size = 5, .me = me, .root = 3};
      EXPECT_EQ(find_algorithm("chain").value()->build(request), find_algorithm("ring").value()->build(request));
    }
  }
}

}  // namespace
}  // namespace chain_test
}  // namespace trestle
