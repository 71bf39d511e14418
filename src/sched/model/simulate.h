// The model of one operation: phases occupy the links of the dimensions as a whole, in exact integers. A tick is one
// picosecond in the library's model; in the paper's model ModelScale defines it. Policies find orders with this model,
// and predict_ns finds times. A Simulator belongs to one thread and can be used repeatedly: after its first run of a
// size it does not allocate. The functions are pure, any thread.
//
// Rules (Themis, arXiv 2110.04478, section 4, and its convention that latencies overlap with transfers):
//   - All chunks arrive at their first phase at time 0; at the next phase when the phase before is complete.
//   - A link carries one phase at a time, for link_ticks. The phase is complete delay_ticks later; meanwhile the link
//     serves the next one. At most in_flight phases of a link are started and not complete.
//   - A link that becomes free at an instant chooses after all arrivals of that instant.
//   - Phases whose links share a resource also occupy that for resource_ticks, one at a time, from when both are free.
//     The link stays occupied until its phase has left the resource.
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
  // Resident data per rank before and after the phase. Only priority rules read it, the simulation does not. CostModel
  // chooses a unit in which every size of the simulation is whole and below 2^62.
  uint64_t size_before = 0;
  uint64_t size_after = 0;
  PhaseKind kind = PhaseKind::kReduceScatter;
  uint8_t after = 0;  // later phases of its chunk
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

// The key of a phase that waits for a link. The phase with the lowest key starts; of equal keys the one that arrived
// first, then the lower chunk, then the lower stage. `next` is the chunk's following phase, nullptr for the last one.
// The rules by name are in sched/policy/priority_rules.h.
using PriorityKey = std::array<uint64_t, 2>;
using PriorityRule = PriorityKey (*)(const SimulatedPhase& phase, const SimulatedPhase* next);

// The times at which a phase started on its link, left it and was complete.
struct PhaseTimes {
  uint64_t start_ticks = 0;
  uint64_t left_ticks = 0;  // when the link became free
  uint64_t complete_ticks = 0;
  bool operator==(const PhaseTimes&) const = default;
};

class Simulator {
 public:
  struct Outcome {
    bool finished = false;    // false: the orders wait for each other, or the limit was exceeded
    uint64_t time_ticks = 0;  // of the last completion so far
  };

  // Stops, unfinished, as soon as the time exceeds `limit_ticks`, so that a search can abandon a bad schedule early.
  Outcome run(const Simulation& simulation, PriorityRule rule, uint64_t limit_ticks = UINT64_MAX);
  // orders[link]: the phases of that link in the order in which they start.
  Outcome run_in_order(const Simulation& simulation, std::span<const std::span<const PhaseId>> orders,
                       uint64_t limit_ticks = UINT64_MAX);
  // In the orders of the schedule, whose simulation it is (CostModel::simulation_of).
  Outcome run_in_order(const Simulation& simulation, const Schedule& schedule);

  // The phases that a link started in the last run, in order. Valid until the next run.
  std::span<const PhaseId> started(size_t link) const;
  // times()[i] belongs to Simulation::phases[i]. It is meaningless for phases that did not start.
  std::span<const PhaseTimes> times() const { return times_; }

 private:
  struct Waiting {
    PriorityKey key;
    uint64_t arrival_ticks;
    uint32_t phase;  // numbered by chunk, then stage
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
    PriorityRule rule = nullptr;     // nullptr: the order is given
    uint64_t left_ticks = 0;         // while busy
    std::vector<Waiting> waiting;    // heap; used with a rule
    std::span<const PhaseId> order;  // used if the order is given
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
  std::vector<Link> links_;  // at least as many as the present run needs
  size_t used_links_ = 0;
  std::vector<uint8_t> arrived_;
  std::vector<uint32_t> chunk_;  // of a phase
  std::vector<uint64_t> resource_free_ticks_;
  std::vector<Completion> completions_;  // heap
  std::vector<PhaseId> started_;         // by link
  std::vector<PhaseTimes> times_;
};

SimulationResult simulate(const Simulation& simulation, PriorityRule rule);
SimulationResult simulate_in_order(const Simulation& simulation, std::span<const std::span<const PhaseId>> orders);

}  // namespace trestle
