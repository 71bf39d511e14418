// Where several senders meet at one port, their losses count whatever limits the transfer: the link, or processors that
// the ranks share. Then long data goes round in a ring, and short data takes few steps.
#include <gtest/gtest.h>

#include "algorithms/catalog.h"
#include "sched/model/cost.h"
#include "sched/model/steps_model.h"
#include "sched/policy/policies.h"
#include "sched/select/select.h"

namespace trestle {
namespace converging_test {
namespace {

// As scripts/lab makes them: hosts on one machine, one rank each, joined by tcp of no known rate.
Topology hosts_of_one_machine(uint64_t hosts) {
  std::vector<RankPlace> places;
  for (uint64_t r = 0; r < hosts; ++r) {
    places.push_back({"host" + std::to_string(r), "id" + std::to_string(r), r, "machine", {3}});
  }
  Topology topology = choose_topology({}, places).value();
  share_processors(places, topology);
  return topology;
}

Schedule selected(const Topology& topology, uint64_t bytes, std::string_view policy,
                  Collective collective = Collective::kAllReduce) {
  SelectionRequest request;
  request.collective = collective;
  request.bytes = bytes;
  request.element_bytes = 4;
  SelectionConfig config;
  config.policy = policy;
  return select_schedule(request, topology, config).value();
}

TEST(Converging, LongDataAvoidsItWhereProcessorsAreTheLimit) {
  const Topology topology = hosts_of_one_machine(4);
  ASSERT_EQ(topology.dimensions.size(), 1u);
  ASSERT_EQ(topology.dimensions[0].bandwidth_mbps, 0u);
  ASSERT_EQ(topology.dimensions[0].shared_resource, "processors");
  for (const Policy& policy : policies()) {
    for (const uint64_t bytes : {uint64_t{4} << 20, uint64_t{64} << 20}) {
      const Schedule schedule = selected(topology, bytes, policy.name);
      for (const ChunkSchedule& chunk : schedule.chunks) {
        for (const PhaseChoice& phase : chunk.phases) {
          EXPECT_EQ(algorithms()[phase.algorithm].name, "ring") << policy.name << " " << bytes;
        }
      }
    }
  }
}

TEST(Converging, ShortDataStillTakesFewSteps) {
  const Topology topology = hosts_of_one_machine(4);
  for (const Policy& policy : policies()) {
    const Schedule schedule = selected(topology, 1024, policy.name);
    ASSERT_EQ(schedule.chunks.size(), 1u) << policy.name;
    uint32_t steps = 0;
    for (const PhaseChoice& phase : schedule.chunks[0].phases) {
      steps += algorithms()[phase.algorithm].cost(phase.kind, 4).steps;
    }
    EXPECT_LE(steps, 2u) << policy.name;
  }
}

// Blocks of an all-to-all arrive one sender after the other, if they are long.
TEST(Converging, LongBlocksOfAnAllToAllTakeTurns) {
  for (const int32_t hosts : {4, 6}) {
    const Topology topology = hosts_of_one_machine(static_cast<uint64_t>(hosts));
    Topology links = topology;  // as they are with a processor for each rank
    links.dimensions[0].shared_resource.clear();
    links.dimensions[0].latency_ns = 50'000;
    links.dimensions[0].bandwidth_mbps = 1000;
    for (const Topology& one : {topology, links}) {
      const Schedule large = selected(one, uint64_t{64} << 20, "auto", Collective::kAllToAll);
      ASSERT_EQ(large.chunks.size(), 1u);
      ASSERT_EQ(large.chunks[0].phases.size(), 1u);
      EXPECT_EQ(algorithms()[large.chunks[0].phases[0].algorithm].name, "pairwise") << hosts;
      const Schedule small = selected(one, 1024, "auto", Collective::kAllToAll);
      EXPECT_NE(algorithms()[small.chunks[0].phases[0].algorithm].name, "pairwise") << hosts;
    }
  }
}

// The loss is in both models, on the link and on the shared resource, and nowhere but in exchanges with several
// senders.
TEST(Converging, CostsTheModelOfStepsAsMuch) {
  Topology topology = hosts_of_one_machine(4);
  topology.dimensions[0].latency_ns = 0;
  const uint64_t permille = rail_cost(topology, 0).converging_permille;
  StepsOptions without;
  without.overheads = false;
  StepsOptions with = without;
  with.losses = true;
  for (const bool shared : {false, true}) {
    topology.dimensions[0].shared_resource = shared ? "processors" : "";
    for (const std::string_view name : {"ring", "direct", "hd"}) {
      const auto algorithm = static_cast<uint16_t>(find_algorithm(name).value() - algorithms().data());
      Schedule schedule;
      schedule.bytes = 4 << 20;
      schedule.chunks = {{schedule.bytes, {{0, PhaseKind::kReduceScatter, algorithm}}}};
      schedule.orders = {{0, 1, {{0, 0}}}};
      const uint64_t lossless_ps = StepsModel(topology, without).run(schedule).time_ps;
      const uint64_t time_ps = StepsModel(topology, with).run(schedule).time_ps;
      const uint64_t expected_ps = name == "ring" ? lossless_ps : lossless_ps + lossless_ps / 1000 * permille;
      // Rounded once per message.
      EXPECT_NEAR(static_cast<double>(time_ps), static_cast<double>(expected_ps), 1000)
          << name << (shared ? " on processors" : " on the link");
    }
  }
}

}  // namespace
}  // namespace converging_test
}  // namespace trestle
