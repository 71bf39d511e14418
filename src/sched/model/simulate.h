// The model of one operation: phases as whole pieces on the links of the dimensions, in exact integers (ticks: one
// picosecond in the library's model, ModelScale says how long in the paper's). Policies use it to find orders,
// predict_ns to time them. A Simulator belongs to one thread and may be used again and again: after its first run of a
// size it allocates nothing. The functions are pure, any thread.
//
// Rules (Themis, arXiv 2110.04478, section 4, and its convention of latencies that overlap with transfers):
//   - All chunks arrive at their first phase at time 0; at the next phase when the phase before is complete.
//   - A link carries one phase at a time, for link_ticks. The phase is complete delay_ticks later; meanwhile the link
//     serves the next one. At most in_flight phases of a link are started and not complete.
//   - A link that becomes free at an instant chooses after all arrivals of that instant.
//   - Phases whose links share a resource also occupy that for resource_ticks, one at a time, from when both are free;
//     the link stays occupied until its phase has left the resource.
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
  uint64_t link_ticks = 0;
  uint64_t delay_ticks = 0;
  uint64_t resource_ticks = 0;
  // What rules of priority look at; the simulation itself does not. Resident data per rank, in a unit in which every
  // size of the simulation is whole (CostModel's business), below 2^62.
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  PhaseKind kind = PhaseKind::kReduceScatter;
  uint8_t after = 0;  // phases of its chunk that follow it
};

struct Simulation {
  std::vector<uint32_t> first = {0};   // phases of chunk k: phases[first[k]] .. phases[first[k + 1] - 1], in order
  std::vector<SimulatedPhase> phases;  // at most 2^32 - 1
  std::vector<uint32_t> in_flight;     // per link, at least 1
};

struct SimulationResult {
  bool finished = false;                     // false: the given orders wait for each other
  uint64_t time_ticks = 0;                   // of the last completion
  std::vector<std::vector<PhaseId>> orders;  // per link: phases in the order in which they started
};

// Among the phases that wait for a link the one with the lowest key starts; equal keys: by arrival, then lower chunk,
// then lower stage. `next` is the phase that follows in the chunk, nullptr for the last one. The rules by name are in
// sched/policy/priority_rules.h.
using PriorityKey = std::array<uint64_t, 2>;
using PriorityRule = PriorityKey (*)(const SimulatedPhase& phase, const SimulatedPhase* next);

// When a phase had its link, and when it was complete.
struct PhaseTimes {
  uint64_t start_ticks = 0;
  uint64_t left_ticks = 0;  // the link was free again
  uint64_t complete_ticks = 0;
  bool operator==(const PhaseTimes&) const = default;
};

class Simulator {
 public:
  struct Outcome {
    bool finished = false;    // false: the orders wait for each other, or the limit was passed
    uint64_t time_ticks = 0;  // of the last completion so far
  };

  // Stops, unfinished, as soon as the time passes `limit_ticks`: a search need not see the end of what is worse.
  Outcome run(const Simulation& simulation, PriorityRule rule, uint64_t limit_ticks = UINT64_MAX);
  // A rule per link.
  Outcome run(const Simulation& simulation, std::span<const PriorityRule> rules, uint64_t limit_ticks = UINT64_MAX);
  // orders[link]: the phases of that link in the order in which they must start.
  Outcome run_in_order(const Simulation& simulation, std::span<const std::span<const PhaseId>> orders,
                       uint64_t limit_ticks = UINT64_MAX);

  // Of the last run, until the next one. Phases that a link started, in order:
  std::span<const PhaseId> started(size_t link) const;
  // times()[i] is of Simulation::phases[i]; of phases that did not start it means nothing.
  std::span<const PhaseTimes> times() const { return times_; }

 private:
  struct Waiting {
    PriorityKey key;
    uint64_t arrival_ticks;
    uint32_t phase;  // phases are numbered by chunk, then stage
    bool operator>(const Waiting& other) const;
  };
  struct Completion {
    uint64_t time_ticks;
    uint32_t phase;
    bool operator>(const Completion& other) const { return time_ticks > other.time_ticks; }
  };
  struct Link {
    uint32_t in_flight = 1;
    uint32_t active = 0;
    bool busy = false;
    PriorityRule rule = nullptr;     // nullptr: an order is given
    uint64_t left_ticks = 0;         // while busy
    std::vector<Waiting> waiting;    // a heap, used with a rule
    std::span<const PhaseId> order;  // used with orders
    uint32_t phases = 0;
    uint32_t first_started = 0;  // its part of started_
    uint32_t started = 0;
  };

  void reset(const Simulation& simulation);
  Outcome play(uint64_t limit_ticks);
  uint64_t next_instant() const;
  void settle(uint64_t now_ticks);
  void arrive(uint32_t phase, uint64_t now_ticks);
  bool choose(Link& link, uint32_t& phase);
  void start(Link& link, uint32_t phase, uint64_t now_ticks);
  bool is_last(uint32_t phase) const { return phase + 1 == simulation_->first[chunk_[phase] + 1]; }

  const Simulation* simulation_ = nullptr;  // during a run only
  size_t completed_ = 0;
  std::vector<Link> links_;  // as many as were ever needed
  size_t used_links_ = 0;
  std::vector<uint8_t> arrived_;
  std::vector<uint32_t> chunk_;  // of a phase
  std::vector<uint64_t> resource_free_ticks_;
  std::vector<Completion> completions_;  // a heap
  std::vector<PhaseId> started_;         // by link
  std::vector<PhaseTimes> times_;
};

SimulationResult simulate(const Simulation& simulation, PriorityRule rule);
SimulationResult simulate_in_order(const Simulation& simulation, std::span<const std::span<const PhaseId>> orders);

}  // namespace trestle
