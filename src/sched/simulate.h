// The model of one operation: phases as whole pieces on the links of the dimensions, in exact integers (picoseconds).
// Policies use it to find orders, predict_ns to time them. Pure, any thread.
//
// Rules (Themis, arXiv 2110.04478, section 4, and its convention of latencies that overlap with transfers):
//   - All chunks arrive at their first phase at time 0; at the next phase when the phase before is complete.
//   - A link carries one phase at a time, for link_ps. The phase is complete delay_ps later; meanwhile the link serves
//     the next one. At most in_flight phases of a link are started and not complete.
//   - A link that becomes free at an instant chooses after all arrivals of that instant.
//   - Phases whose links share a resource also occupy that for resource_ps, one at a time, from when both are free; the
//     link stays occupied until its phase has left the resource.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/schedule.h"

namespace trestle {

inline constexpr uint8_t kNoResource = 0xff;

struct SimulatedPhase {
  uint8_t link = 0;  // index into Simulation::in_flight
  uint8_t resource = kNoResource;
  uint64_t link_ps = 0;
  uint64_t delay_ps = 0;
  uint64_t resource_ps = 0;
};

struct Simulation {
  std::vector<uint32_t> first = {0};   // phases of chunk k: phases[first[k]] .. phases[first[k + 1] - 1], in order
  std::vector<SimulatedPhase> phases;  // at most 2^32 - 1
  std::vector<uint32_t> in_flight;     // per link, at least 1
};

struct SimulationResult {
  bool finished = false;                     // false: the given orders wait for each other
  uint64_t time_ps = 0;                      // of the last completion
  std::vector<std::vector<PhaseId>> orders;  // per link: phases in the order in which they started
};

// Among the phases that wait for a link the one with the lowest key starts; equal keys: lower chunk, then lower stage.
using PriorityKey = std::array<uint64_t, 2>;
using PriorityRule = PriorityKey (*)(const SimulatedPhase& phase, uint64_t arrival_ps);
PriorityKey first_in_first_out(const SimulatedPhase& phase, uint64_t arrival_ps);

SimulationResult simulate(const Simulation& simulation, PriorityRule rule);
// orders[link]: the phases of that link in the order in which they must start.
SimulationResult simulate_in_order(const Simulation& simulation, std::span<const std::span<const PhaseId>> orders);

}  // namespace trestle
