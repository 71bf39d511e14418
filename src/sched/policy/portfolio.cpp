#include "sched/policy/portfolio.h"

#include <algorithm>

#include "base/check.h"
#include "sched/model/second_level.h"
#include "sched/policy/fluid_bound.h"
#include "sched/policy/local_search.h"
#include "sched/policy/lp_split.h"
#include "sched/policy/order_rules.h"

namespace trestle {
namespace {

constexpr uint64_t kCalls = 16;
constexpr uint64_t kNsPerPhase = 70;
// The number of starts of the local search, each with another number of chunks.
constexpr size_t kSearched = 2;

struct Plan {
  PlannedSchedule planned;
  PriorityRule rule = nullptr;
};

ChunkGrain grain_of(const PolicyRequest& request) {
  return {std::max<uint64_t>(request.granule, 1), std::max<uint64_t>(request.fewest_bytes, 1)};
}

PlannedSchedule order_with(PolicyRequest& request, const OrderLoads& loads, const std::vector<ChunkOrders>& chunks,
                           PriorityRule rule) {
  std::vector<ChunkSchedule> schedules;
  for (const ChunkOrders& orders : chunks) schedules.push_back(loads.chunk(orders));
  return order_phases(request.bytes, std::move(schedules), request.algorithms.model(), rule, request.in_flight);
}

// Uses the sequences that the search found, if they are better.
void follow(const Found& found, CostModel& model, PlannedSchedule& planned) {
  if (found.sequences.empty()) return;
  const Simulation simulation = model.simulation_of(planned.schedule);
  std::vector<std::span<const PhaseId>> sequences;
  for (size_t l = 0; l < planned.schedule.orders.size(); ++l) sequences.emplace_back(found.sequences[l]);
  Simulator simulator;
  const Simulator::Outcome outcome = simulator.run_in_order(simulation, sequences, planned.time_ticks);
  if (!outcome.finished || outcome.time_ticks >= planned.time_ticks) return;
  planned.time_ticks = outcome.time_ticks;
  for (size_t l = 0; l < sequences.size(); ++l) planned.schedule.orders[l].order = found.sequences[l];
}

// Gives each chunk the algorithms that suit its own size instead of the mean size, if that is better.
void refit(PolicyRequest& request, PriorityRule rule, PlannedSchedule& planned) {
  CostModel& model = request.algorithms.model();
  std::vector<ChunkSchedule> chunks = planned.schedule.chunks;
  for (ChunkSchedule& chunk : chunks) {
    PhaseWalk walk(model.topology(), chunk.bytes, chunk.phases);
    for (PhaseChoice& phase : chunk.phases) {
      phase = request.algorithms.cheapest(phase.kind, phase.dimension, walk.next(phase));
    }
  }
  if (chunks == planned.schedule.chunks) return;
  PlannedSchedule other = order_phases(request.bytes, std::move(chunks), model, rule, request.in_flight);
  if (other.time_ticks < planned.time_ticks) planned = std::move(other);
}

OrderLoads loads_of(PolicyRequest& request) {
  const auto chunks = static_cast<uint32_t>(std::max<size_t>(1, request.chunk_bytes.size()));
  return OrderLoads(request, request.bytes / chunks, chunks);
}

Plan lp_split(PolicyRequest& request, const OrderLoads& loads) {
  const auto count = static_cast<uint32_t>(std::max<size_t>(1, request.chunk_bytes.size()));
  const std::vector<ChunkOrders> chunks = cut_chunks(split_over_orders(loads), request.bytes, count, grain_of(request));
  Plan best;
  for (const OrderRule& rule : order_rules()) {
    PlannedSchedule planned = order_with(request, loads, chunks, rule.rule);
    if (best.rule != nullptr && planned.time_ticks >= best.planned.time_ticks) continue;
    best = {std::move(planned), rule.rule};
  }
  return best;
}

class PortfolioPlanner {
 public:
  explicit PortfolioPlanner(PolicyRequest& request) : request_(request) {}

  Portfolio run() {
    result_.bound_ticks = fluid_bound_ticks(request_);
    for (const uint32_t count : counts()) try_members(count);
    std::ranges::stable_sort(starts_, {}, [](const Start& start) { return start.plan.planned.time_ticks; });
    if (starts_.size() > kSearched) starts_.resize(kSearched);
    if (request_.dimensions.size() > 1) {
      for (Start& start : starts_) search(start, starts_.size());
    }
    for (Member& member : members_) decide(member);
    return std::move(result_);
  }

 private:
  struct Member {
    std::string_view name;
    std::vector<PlannedSchedule> schedules;
  };
  // A start of the search: the best schedule for a number of chunks.
  struct Start {
    std::vector<uint64_t> equal;
    Plan plan;
  };

  std::vector<uint32_t> counts() const {
    if (request_.most_chunks == 0) return {static_cast<uint32_t>(std::max<size_t>(1, request_.chunk_bytes.size()))};
    std::vector<uint32_t> counts;
    for (uint32_t count = 1; count <= request_.most_chunks; count *= 2) counts.push_back(count);
    return counts;
  }

  void try_members(uint32_t count) {
    Start start;
    start.equal = request_.most_chunks == 0 ? request_.chunk_bytes : equal_sizes(count);
    PolicyRequest request = request_;
    request.chunk_bytes = start.equal;
    const auto consider = [&](std::string_view name, Plan plan) {
      note(name, plan.planned);
      if (start.plan.rule != nullptr && plan.planned.time_ticks >= start.plan.planned.time_ticks) return;
      start.plan = std::move(plan);
    };
    consider("baseline", {plan_baseline(request), first_in_first_out});
    if (request.dimensions.size() > 1) {
      request.intra = first_in_first_out;
      consider("themis, fifo", {plan_themis(request), request.intra});
      request.intra = smallest_chunk_first;
      consider("themis, scf", {plan_themis(request), request.intra});
      consider("lp-split", lp_split(request, loads_of(request)));
    }
    starts_.push_back(std::move(start));
  }

  std::vector<uint64_t> equal_sizes(uint32_t count) const {
    const ChunkGrain grain = grain_of(request_);
    const uint64_t units = std::max<uint64_t>(1, request_.bytes / grain.granule);
    const uint64_t parts = std::min<uint64_t>(count, units);
    std::vector<uint64_t> sizes(parts);
    for (uint64_t k = 0; k < parts; ++k) sizes[k] = (units / parts + (k < units % parts ? 1 : 0)) * grain.granule;
    sizes.back() += request_.bytes - std::min(request_.bytes, units * grain.granule);
    if (units * grain.granule > request_.bytes) sizes.back() = request_.bytes;
    return sizes;
  }

  void note(std::string_view name, const PlannedSchedule& planned) {
    auto member = std::ranges::find(members_, name, &Member::name);
    if (member == members_.end()) member = members_.insert(members_.end(), Member{name, {}});
    member->schedules.push_back(planned);
    best_of_phases_ = std::min(best_of_phases_, planned.time_ticks);
  }

  void decide(Member& member) {
    if (request_.second_level != nullptr) request_.second_level->judge(member.schedules, kEvaluations);
    for (PlannedSchedule& planned : member.schedules) {
      const auto chunks = static_cast<uint32_t>(planned.schedule.chunks.size());
      result_.candidates.push_back({member.name, chunks, planned.time_ticks});
      if (has_best_ && !is_faster(planned, result_.best)) continue;
      result_.best = std::move(planned);
      has_best_ = true;
    }
  }

  uint64_t budget(size_t searches) const {
    const CostModel& model = request_.algorithms.model();
    if (model.is_paper()) return request_.most_search_phases / searches;
    const uint64_t best =
        request_.to_beat_ticks == 0 ? best_of_phases_ : std::min(request_.to_beat_ticks, best_of_phases_);
    if (best <= result_.bound_ticks) return 0;
    const uint64_t gain_ns = (best - result_.bound_ticks) / model.scale().ticks_per_ns;
    return std::min(request_.most_search_phases, gain_ns * kCalls / kNsPerPhase) / searches;
  }

  void search(Start& start, size_t searches) {
    const Schedule& schedule = start.plan.planned.schedule;
    const uint64_t phases = budget(searches);
    if (phases < kSearched * schedule.chunks.size() * schedule.chunks[0].phases.size()) return;
    PolicyRequest request = request_;
    request.chunk_bytes = start.equal;
    const OrderLoads loads = loads_of(request);
    const SearchRequest what{loads,
                             request.algorithms.model(),
                             grain_of(request),
                             request.in_flight == 0 ? kMostInFlight : request.in_flight,
                             phases,
                             result_.bound_ticks};
    std::vector<ChunkOrders> chunks;
    for (const ChunkSchedule& chunk : schedule.chunks) chunks.push_back(loads.orders_of(chunk));
    Found found = search_schedules(what, std::move(chunks), start.plan.rule);
    result_.searched_phases += found.evaluations * schedule.chunks.size() * schedule.chunks[0].phases.size();
    PlannedSchedule planned = order_with(request, loads, found.chunks, found.rule);
    follow(found, request.algorithms.model(), planned);
    refit(request, found.rule, planned);
    note("lp-split + search", planned);
  }

  PolicyRequest& request_;
  std::vector<Start> starts_;
  std::vector<Member> members_;  // in the order in which they were first tried
  uint64_t best_of_phases_ = UINT64_MAX;
  bool has_best_ = false;
  Portfolio result_;
};

}  // namespace

Portfolio plan_portfolio(PolicyRequest& request) {
  return PortfolioPlanner(request).run();
}

PlannedSchedule plan_lp_split(PolicyRequest& request) {
  const OrderLoads loads = loads_of(request);
  return lp_split(request, loads).planned;
}

PlannedSchedule plan_auto(PolicyRequest& request) {
  return plan_portfolio(request).best;
}

}  // namespace trestle
