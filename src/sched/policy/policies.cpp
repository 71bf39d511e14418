#include "sched/policy/policies.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text/names.h"
#include "base/text/value_text.h"
#include "sched/policy/portfolio.h"

namespace trestle {
namespace {

constexpr Policy kPolicies[] = {
    {"baseline", "reduce-scatter from the innermost dimension out, all-gather back in, every chunk alike",
     plan_baseline},
    {"themis", "each chunk begins on the dimension that has least to do (Themis)", plan_themis},
    {"auto", "the best predicted of baseline, Themis, unequal chunks by a linear programme, and a local search",
     plan_auto, true},
};

constexpr Policy kMembers[] = {
    {"lp-split", "unequal chunks by a linear programme, as auto has them before its search", plan_lp_split},
};

// While a phase of a link waits for its latency, the next ones may use the link. They may also use it while a phase
// waits between its steps, which this model does not see. So at least four are in flight. In the model of steps, on the
// paper's systems, LP-split with 100 MB in 64 chunks uses 39 to 74 % of the links with two in flight, 48 to 83 % with
// four, 52 to 83 % with eight or more.
uint32_t enough_in_flight(const Simulation& simulation, uint8_t link, size_t phases) {
  static constexpr uint64_t kFewest = 4;
  uint64_t most = kFewest;
  for (const SimulatedPhase& phase : simulation.phases) {
    if (phase.link != link || phase.delay_ticks == 0) continue;
    const uint64_t occupied_ticks = std::max({phase.link_ticks, phase.resource_ticks, uint64_t{1}});
    most = std::max(most, 1 + (phase.delay_ticks + occupied_ticks - 1) / occupied_ticks);
  }
  return static_cast<uint32_t>(std::min({most, uint64_t{kMostInFlight}, static_cast<uint64_t>(phases)}));
}

}  // namespace

std::span<const Policy> policies() {
  return kPolicies;
}

std::span<const Policy> portfolio_members() {
  return kMembers;
}

Result<const Policy*> find_policy(std::string_view name) {
  for (const Policy& member : kMembers) {
    if (member.name == name) return &member;
  }
  const Result<const Policy*> found = row_named(kPolicies, name, "a schedule policy");
  if (!found.ok()) return Error{Code::kInvalidArgument, "TRESTLE_SCHED: " + found.error().message};
  return found;
}

PlannedSchedule order_phases(uint64_t bytes, std::vector<ChunkSchedule> chunks, CostModel& model, PriorityRule rule,
                             uint32_t in_flight) {
  std::array<uint32_t, 256> counts{};
  for (const ChunkSchedule& chunk : chunks) {
    for (const PhaseChoice& phase : chunk.phases) ++counts[phase.dimension];
  }
  PlannedSchedule planned;
  Schedule& schedule = planned.schedule;
  std::array<uint8_t, 256> links{};
  for (size_t d = 0; d < counts.size(); ++d) {
    if (counts[d] == 0) continue;
    links[d] = static_cast<uint8_t>(schedule.orders.size());
    schedule.orders.emplace_back().dimension = static_cast<uint8_t>(d);
  }
  Simulation simulation;
  for (const ChunkSchedule& chunk : chunks) model.append(chunk, links, simulation);
  for (size_t l = 0; l < schedule.orders.size(); ++l) {
    DimensionOrder& order = schedule.orders[l];
    const uint32_t phases = counts[order.dimension];
    order.in_flight =
        in_flight == 0 ? enough_in_flight(simulation, static_cast<uint8_t>(l), phases) : std::min(in_flight, phases);
    simulation.in_flight.push_back(order.in_flight);
  }
  SimulationResult result = simulate(simulation, rule);
  CHECK(result.finished, "a simulation by a rule that did not finish");
  for (size_t l = 0; l < schedule.orders.size(); ++l) schedule.orders[l].order = std::move(result.orders[l]);
  schedule.bytes = bytes;
  schedule.chunks = std::move(chunks);
  planned.time_ticks = result.time_ticks;
  return planned;
}

}  // namespace trestle
