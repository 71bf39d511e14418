#include "sched/model/predict.h"

#include <algorithm>

#include "base/check.h"
#include "sched/model/cost.h"
#include "sched/model/second_level.h"

namespace trestle {
namespace {

Simulator::Outcome run(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks,
                       Simulation& simulation, Simulator& simulator) {
  simulation = CostModel(topology, blocks).simulation_of(schedule);
  size_t ordered = 0;
  for (const DimensionOrder& order : schedule.orders) ordered += order.order.size();
  CHECK(ordered == simulation.phases.size(), "a schedule whose orders do not hold each phase once");
  const Simulator::Outcome outcome = simulator.run_in_order(simulation, schedule);
  CHECK(outcome.finished, "a schedule whose orders wait for each other");
  return outcome;
}

}  // namespace

uint64_t predict_by_phases_ps(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks) {
  Simulation simulation;
  Simulator simulator;
  return run(schedule, topology, blocks, simulation, simulator).time_ticks;
}

uint64_t predict_ns(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks) {
  const uint64_t time_ps = has_second_level(schedule.bytes) ? SecondLevel(topology, blocks).time_ps(schedule)
                                                            : predict_by_phases_ps(schedule, topology, blocks);
  return (time_ps + 999) / 1000;
}

namespace {

Prediction predict_by_steps(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks) {
  const StepsResult result = SecondLevel(topology, blocks).run(schedule);
  Prediction prediction;
  prediction.time_ps = result.time_ps;
  for (size_t l = 0; l < schedule.orders.size(); ++l) {
    PredictedLink& link = prediction.links.emplace_back();
    link.dimension = result.links[l].dimension;
    link.busy_ps = result.links[l].busy_ps;
    for (const PhaseId& id : schedule.orders[l].order) {
      const StepsTimes& times = result.phases[id.chunk][id.stage];
      link.times.push_back({times.start_ps, times.end_ps, times.end_ps});
    }
  }
  return prediction;
}

}  // namespace

Prediction predict(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks) {
  if (has_second_level(schedule.bytes)) return predict_by_steps(schedule, topology, blocks);
  Simulation simulation;
  Simulator simulator;
  Prediction prediction;
  prediction.time_ps = run(schedule, topology, blocks, simulation, simulator).time_ticks;
  for (const DimensionOrder& order : schedule.orders) {
    PredictedLink& link = prediction.links.emplace_back();
    link.dimension = order.dimension;
    for (const PhaseId& id : order.order) {
      const PhaseTimes& times = simulator.times()[simulation.first[id.chunk] + id.stage];
      link.times.push_back(times);
      link.busy_ps += times.left_ticks - times.start_ticks;
    }
  }
  return prediction;
}

uint64_t segments_sent(const Schedule& schedule, const Topology& topology, const SegmentRule& rule) {
  uint64_t count = 0;
  for (const ChunkSchedule& chunk : schedule.chunks) {
    PhaseWalk walk(topology, chunk.bytes, chunk.phases);
    for (const PhaseChoice& choice : chunk.phases) {
      const PhaseBytes bytes = walk.next(choice);
      const AlgorithmCost cost = algorithms()[choice.algorithm].cost(choice.kind, group_size(topology, choice));
      const uint64_t messages = std::max(cost.messages, 1u);
      const auto sent = static_cast<unsigned __int128>(bytes.bytes) * cost.sent_num / cost.sent_den;
      const auto each = static_cast<uint64_t>(sent / bytes.divisor / messages);
      count += messages * segments_of(each, segment_bytes_of(rule, each));
    }
  }
  return count * static_cast<uint64_t>(topology.ranks());
}

}  // namespace trestle
