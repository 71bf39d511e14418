#include <algorithm>
#include <array>

#include "base/check.h"
#include "sched/cost.h"
#include "sched/select.h"
#include "sched/simulate.h"

namespace trestle {

uint64_t predict_ns(const Schedule& schedule, const Topology& topology) {
  CostModel model(topology);
  Simulation simulation;
  std::array<uint8_t, 256> links{};
  std::vector<std::span<const PhaseId>> orders;
  size_t ordered = 0;
  for (size_t i = 0; i < schedule.orders.size(); ++i) {
    const DimensionOrder& order = schedule.orders[i];
    links[order.dimension] = static_cast<uint8_t>(i);
    simulation.in_flight.push_back(order.in_flight);
    orders.emplace_back(order.order);
    ordered += order.order.size();
  }
  for (const ChunkSchedule& chunk : schedule.chunks) model.append(chunk, links, simulation);
  CHECK(ordered == simulation.phases.size(), "a schedule whose orders do not hold each phase once");
  const SimulationResult result = simulate_in_order(simulation, orders);
  CHECK(result.finished, "a schedule whose orders wait for each other");
  return (result.time_ticks + 999) / 1000;
}

}  // namespace trestle
