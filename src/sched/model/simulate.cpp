#include "sched/model/simulate.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {

bool Simulator::Waiting::operator>(const Waiting& other) const {
  if (key[0] != other.key[0]) return key[0] > other.key[0];
  if (key[1] != other.key[1]) return key[1] > other.key[1];
  if (arrival_ticks != other.arrival_ticks) return arrival_ticks > other.arrival_ticks;
  return phase > other.phase;
}

Simulator::Outcome Simulator::run(const Simulation& simulation, PriorityRule rule, uint64_t limit_ticks) {
  CHECK(rule != nullptr, "a simulation without a rule");
  reset(simulation);
  for (Link& link : links_) link.rule = rule;
  return play(limit_ticks);
}

Simulator::Outcome Simulator::run_in_order(const Simulation& simulation,
                                           std::span<const std::span<const PhaseId>> orders, uint64_t limit_ticks) {
  CHECK(orders.size() == simulation.in_flight.size(), "a simulation needs an order per link");
  reset(simulation);
  for (size_t l = 0; l < orders.size(); ++l) {
    CHECK(orders[l].size() <= links_[l].phases, "an order names a phase that is not on its link");
    for (const PhaseId& id : orders[l]) {
      CHECK(id.chunk + size_t{1} < simulation.first.size() &&
                id.stage < simulation.first[id.chunk + 1] - simulation.first[id.chunk],
            "an order names a phase that does not exist");
      CHECK(simulation.phases[simulation.first[id.chunk] + id.stage].link == l,
            "an order names a phase that is not on its link");
    }
    links_[l].rule = nullptr;
    links_[l].order = orders[l];
  }
  return play(limit_ticks);
}

Simulator::Outcome Simulator::run_in_order(const Simulation& simulation, const Schedule& schedule) {
  std::vector<std::span<const PhaseId>> orders;
  for (const DimensionOrder& order : schedule.orders) orders.emplace_back(order.order);
  return run_in_order(simulation, orders);
}

std::span<const PhaseId> Simulator::started(size_t link) const {
  CHECK(link < used_links_, "the order of a link that does not exist");
  return std::span(started_).subspan(links_[link].first_started, links_[link].started);
}

void Simulator::reset(const Simulation& simulation) {
  simulation_ = &simulation;
  completed_ = 0;
  completions_.clear();
  resource_free_ticks_.clear();
  const size_t phases = simulation.phases.size();
  arrived_.assign(phases, 0);
  chunk_.resize(phases);
  times_.resize(phases);
  started_.resize(phases);
  for (uint32_t k = 0; k + 1 < simulation.first.size(); ++k) {
    std::fill(chunk_.begin() + simulation.first[k], chunk_.begin() + simulation.first[k + 1], k);
  }
  used_links_ = simulation.in_flight.size();
  if (links_.size() < used_links_) links_.resize(used_links_);
  for (Link& link : links_) {
    link.active = link.phases = link.started = 0;
    link.busy = false;
    link.waiting.clear();
    link.order = {};
  }
  for (size_t l = 0; l < used_links_; ++l) links_[l].in_flight = std::max(1u, simulation.in_flight[l]);
  for (const SimulatedPhase& phase : simulation.phases) {
    CHECK(phase.link < used_links_, "a phase on a link that does not exist");
    ++links_[phase.link].phases;
  }
  uint32_t before = 0;
  for (size_t l = 0; l < used_links_; ++l) {
    links_[l].first_started = before;
    before += links_[l].phases;
  }
}

Simulator::Outcome Simulator::play(uint64_t limit_ticks) {
  const Simulation& simulation = *simulation_;
  for (uint32_t k = 0; k + 1 < simulation.first.size(); ++k) {
    if (simulation.first[k] < simulation.first[k + 1]) arrive(simulation.first[k], 0);
  }
  uint64_t now_ticks = 0;
  for (;;) {
    for (size_t l = 0; l < used_links_; ++l) {
      uint32_t phase = 0;
      if (choose(links_[l], phase)) start(links_[l], phase, now_ticks);
    }
    const uint64_t next_ticks = next_instant();
    if (next_ticks == UINT64_MAX || next_ticks > limit_ticks) break;
    now_ticks = next_ticks;
    settle(now_ticks);
  }
  simulation_ = nullptr;
  return {completed_ == simulation.phases.size(), now_ticks};
}

uint64_t Simulator::next_instant() const {
  uint64_t next_ticks = completions_.empty() ? UINT64_MAX : completions_.front().time_ticks;
  for (size_t l = 0; l < used_links_; ++l) {
    if (links_[l].busy) next_ticks = std::min(next_ticks, links_[l].left_ticks);
  }
  return next_ticks;
}

// Handles all events of this instant before anything starts.
void Simulator::settle(uint64_t now_ticks) {
  for (size_t l = 0; l < used_links_; ++l) {
    if (links_[l].left_ticks == now_ticks) links_[l].busy = false;
  }
  while (!completions_.empty() && completions_.front().time_ticks == now_ticks) {
    const uint32_t phase = completions_.front().phase;
    std::pop_heap(completions_.begin(), completions_.end(), std::greater<>());
    completions_.pop_back();
    --links_[simulation_->phases[phase].link].active;
    ++completed_;
    if (!is_last(phase)) arrive(phase + 1, now_ticks);
  }
}

void Simulator::arrive(uint32_t phase, uint64_t now_ticks) {
  arrived_[phase] = 1;
  const SimulatedPhase& what = simulation_->phases[phase];
  Link& link = links_[what.link];
  if (link.rule == nullptr) return;
  link.waiting.push_back({link.rule(what, is_last(phase) ? nullptr : &what + 1), now_ticks, phase});
  std::push_heap(link.waiting.begin(), link.waiting.end(), std::greater<>());
}

// Chooses the phase that the link starts next. False: none may start now.
bool Simulator::choose(Link& link, uint32_t& phase) {
  if (link.busy || link.active == link.in_flight) return false;
  if (link.rule != nullptr) {
    if (link.waiting.empty()) return false;
    phase = link.waiting.front().phase;
    std::pop_heap(link.waiting.begin(), link.waiting.end(), std::greater<>());
    link.waiting.pop_back();
    return true;
  }
  if (link.started == link.order.size()) return false;
  const PhaseId id = link.order[link.started];
  phase = simulation_->first[id.chunk] + id.stage;
  return arrived_[phase] != 0;
}

void Simulator::start(Link& link, uint32_t phase, uint64_t now_ticks) {
  const SimulatedPhase& what = simulation_->phases[phase];
  uint64_t left_ticks = now_ticks + what.link_ticks;
  if (what.resource != kNoResource) {
    if (what.resource >= resource_free_ticks_.size()) resource_free_ticks_.resize(what.resource + size_t{1}, 0);
    uint64_t& free_ticks = resource_free_ticks_[what.resource];
    free_ticks = std::max(free_ticks, now_ticks) + what.resource_ticks;
    left_ticks = std::max(left_ticks, free_ticks);
  }
  link.busy = true;
  link.left_ticks = left_ticks;
  ++link.active;
  started_[link.first_started + link.started++] = {chunk_[phase], phase - simulation_->first[chunk_[phase]]};
  times_[phase] = {now_ticks, left_ticks, left_ticks + what.delay_ticks};
  completions_.push_back({left_ticks + what.delay_ticks, phase});
  std::push_heap(completions_.begin(), completions_.end(), std::greater<>());
}

namespace {

SimulationResult result_of(const Simulator& simulator, const Simulator::Outcome& outcome, size_t links) {
  SimulationResult result{outcome.finished, outcome.time_ticks, {}};
  for (size_t l = 0; l < links; ++l) {
    const auto started = simulator.started(l);
    result.orders.emplace_back(started.begin(), started.end());
  }
  return result;
}

}  // namespace

SimulationResult simulate(const Simulation& simulation, PriorityRule rule) {
  Simulator simulator;
  const Simulator::Outcome outcome = simulator.run(simulation, rule);
  return result_of(simulator, outcome, simulation.in_flight.size());
}

SimulationResult simulate_in_order(const Simulation& simulation, std::span<const std::span<const PhaseId>> orders) {
  Simulator simulator;
  const Simulator::Outcome outcome = simulator.run_in_order(simulation, orders);
  return result_of(simulator, outcome, simulation.in_flight.size());
}

}  // namespace trestle
