#include "sched/simulate.h"

#include <algorithm>
#include <queue>

#include "base/check.h"

namespace trestle {
namespace {

struct Waiting {
  PriorityKey key;
  uint32_t phase;  // phases are numbered by chunk, then stage
  bool operator>(const Waiting& other) const { return key != other.key ? key > other.key : phase > other.phase; }
};

// A phase has left its link, or is complete.
struct Event {
  uint64_t time_ps;
  uint32_t phase;
  bool complete;
  bool operator>(const Event& other) const { return time_ps > other.time_ps; }
};

template <class T>
using LowestFirst = std::priority_queue<T, std::vector<T>, std::greater<T>>;

struct Link {
  uint32_t in_flight = 1;
  uint32_t active = 0;
  bool busy = false;
  LowestFirst<Waiting> waiting;    // used with a rule
  std::span<const PhaseId> order;  // used with orders
  std::vector<PhaseId> started;
};

class Simulator {
 public:
  explicit Simulator(const Simulation& simulation) : simulation_(simulation), links_(simulation.in_flight.size()) {
    arrived_.resize(simulation.phases.size(), false);
    chunk_.resize(simulation.phases.size());
    for (uint32_t k = 0; k + 1 < simulation.first.size(); ++k) {
      std::fill(chunk_.begin() + simulation.first[k], chunk_.begin() + simulation.first[k + 1], k);
    }
    for (size_t l = 0; l < links_.size(); ++l) links_[l].in_flight = std::max(1u, simulation.in_flight[l]);
  }

  SimulationResult run(PriorityRule rule, std::span<const std::span<const PhaseId>> orders) {
    rule_ = rule;
    for (size_t l = 0; l < orders.size(); ++l) links_[l].order = orders[l];
    for (uint32_t k = 0; k + 1 < simulation_.first.size(); ++k) {
      if (simulation_.first[k] < simulation_.first[k + 1]) arrive(simulation_.first[k]);
    }
    start_all();
    while (!events_.empty()) {
      now_ps_ = events_.top().time_ps;
      while (!events_.empty() && events_.top().time_ps == now_ps_) {
        const Event event = events_.top();
        events_.pop();
        happen(event);
      }
      start_all();
    }
    SimulationResult result;
    result.finished = completed_ == simulation_.phases.size();
    result.time_ps = now_ps_;
    for (Link& link : links_) result.orders.push_back(std::move(link.started));
    return result;
  }

 private:
  void arrive(uint32_t phase) {
    arrived_[phase] = true;
    if (rule_ == nullptr) return;
    const SimulatedPhase& what = simulation_.phases[phase];
    links_[what.link].waiting.push({rule_(what, now_ps_), phase});
  }

  void happen(const Event& event) {
    Link& link = links_[simulation_.phases[event.phase].link];
    if (!event.complete) {
      link.busy = false;
      return;
    }
    --link.active;
    ++completed_;
    if (event.phase + 1 < simulation_.first[chunk_[event.phase] + 1]) arrive(event.phase + 1);
  }

  // The phase that the link starts next, if it may start now.
  bool next(Link& link, uint32_t& phase) {
    if (link.busy || link.active == link.in_flight) return false;
    if (rule_ != nullptr) {
      if (link.waiting.empty()) return false;
      phase = link.waiting.top().phase;
      link.waiting.pop();
      return true;
    }
    if (link.started.size() == link.order.size()) return false;
    const PhaseId id = link.order[link.started.size()];
    phase = simulation_.first[id.chunk] + id.stage;
    return arrived_[phase];
  }

  void start_all() {
    for (Link& link : links_) {
      uint32_t phase = 0;
      if (next(link, phase)) start(link, phase);
    }
  }

  void start(Link& link, uint32_t phase) {
    const SimulatedPhase& what = simulation_.phases[phase];
    uint64_t left_ps = now_ps_ + what.link_ps;
    if (what.resource != kNoResource) {
      if (what.resource >= resource_free_ps_.size()) resource_free_ps_.resize(what.resource + size_t{1}, 0);
      uint64_t& free_ps = resource_free_ps_[what.resource];
      free_ps = std::max(free_ps, now_ps_) + what.resource_ps;
      left_ps = std::max(left_ps, free_ps);
    }
    link.busy = true;
    ++link.active;
    link.started.push_back({chunk_[phase], phase - simulation_.first[chunk_[phase]]});
    events_.push({left_ps, phase, false});
    events_.push({left_ps + what.delay_ps, phase, true});
  }

  const Simulation& simulation_;
  PriorityRule rule_ = nullptr;
  uint64_t now_ps_ = 0;
  size_t completed_ = 0;
  std::vector<Link> links_;
  std::vector<bool> arrived_;
  std::vector<uint32_t> chunk_;  // of a phase
  std::vector<uint64_t> resource_free_ps_;
  LowestFirst<Event> events_;
};

}  // namespace

PriorityKey first_in_first_out(const SimulatedPhase&, uint64_t arrival_ps) {
  return {arrival_ps, 0};
}

SimulationResult simulate(const Simulation& simulation, PriorityRule rule) {
  CHECK(rule != nullptr, "a simulation without a rule");
  return Simulator(simulation).run(rule, {});
}

SimulationResult simulate_in_order(const Simulation& simulation, std::span<const std::span<const PhaseId>> orders) {
  CHECK(orders.size() == simulation.in_flight.size(), "a simulation needs an order per link");
  for (const auto& order : orders) {
    for (const PhaseId& id : order) {
      CHECK(id.chunk + size_t{1} < simulation.first.size() &&
                id.stage < simulation.first[id.chunk + 1] - simulation.first[id.chunk],
            "an order names a phase that does not exist");
    }
  }
  return Simulator(simulation).run(nullptr, orders);
}

}  // namespace trestle
