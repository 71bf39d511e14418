// The policy of Themis: "A Network Bandwidth-Aware Collective Scheduling Policy for Distributed Training of DL Models"
// (ISCA 2022, arXiv 2110.04478, Algorithm 1 and sections 4.3 to 4.6).
//
// In the baseline's order the first dimension carries most of the bytes, because data shrinks as it is reduced. Themis
// tracks the load of each dimension, which is the time that it needs for the chunks so far. Each chunk begins on the
// dimension with the lowest load. The order of phases that meet on a link comes from the simulation and is enforced at
// run time, so no two ranks can wait for each other.
//
// A load begins with the latency of the operation's own phases and grows by the link time of each chunk's phases. An
// all-reduce counts only the reduce-scatter half, because its all-gather half is the mirror image. The threshold is the
// time of a sixteenth of the chunk on the least loaded dimension. Smaller differences are noise, and the chunk takes
// the baseline's order. All comparisons are in exact integers.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/wide.h"
#include "sched/policy/policies.h"
#include "sched/policy/themis.h"

namespace trestle {
namespace {

constexpr uint64_t kThresholdDivisor = 16;

// Ties: lower dimensions first, or last if the baseline goes inwards.
std::vector<uint8_t> by_load(const ThemisLoads& loads, bool gathers) {
  std::vector<uint8_t> order(loads.dimensions.size());
  std::iota(order.begin(), order.end(), uint8_t{0});
  std::ranges::stable_sort(order, {}, [&](uint8_t i) { return loads.ticks[i]; });
  if (gathers) std::ranges::reverse(order);
  return order;
}

class ThemisPlanner {
 public:
  explicit ThemisPlanner(PolicyRequest& request)
      : request_(request),
        model_(request.algorithms.model()),
        gathers_(!request.reduce_scatter),
        kind_(gathers_ ? PhaseKind::kAllGather : PhaseKind::kReduceScatter) {
    loads_.dimensions = request.dimensions;
    loads_.ticks.assign(request.dimensions.size(), 0);
  }

  ThemisPlan plan() {
    ThemisPlan result;
    for (size_t k = 0; k < request_.chunk_bytes.size(); ++k) {
      const uint64_t bytes = request_.chunk_bytes[k];
      if (k == 0) begin(bytes);
      const bool level = balanced(bytes);
      result.fallback.push_back(level);
      result.chunks.push_back({bytes, phases(bytes, level ? baseline() : by_load(loads_, gathers_))});
      add(result.chunks.back());
    }
    result.loads = std::move(loads_);
    return result;
  }

 private:
  std::vector<uint8_t> baseline() const {
    std::vector<uint8_t> order(request_.dimensions.size());
    std::iota(order.begin(), order.end(), uint8_t{0});
    if (gathers_) std::ranges::reverse(order);
    return order;
  }

  std::vector<PhaseChoice> phases(uint64_t bytes, const std::vector<uint8_t>& order) {
    std::vector<PhaseChoice> phases;
    for (const uint8_t i : order) phases.push_back({request_.dimensions[i], kind_, 0});
    if (request_.reduce_scatter && request_.all_gather) {
      for (size_t i = order.size(); i-- > 0;) {
        phases.push_back({request_.dimensions[order[i]], PhaseKind::kAllGather, 0});
      }
    }
    PhaseWalk walk(model_.topology(), bytes, phases);
    for (PhaseChoice& phase : phases) {
      phase = request_.algorithms.cheapest(phase.kind, phase.dimension, walk.next(phase));
    }
    return phases;
  }

  size_t index_of(uint8_t dimension) const {
    const auto found = std::ranges::find(request_.dimensions, dimension);
    CHECK(found != request_.dimensions.end(), "a phase in a dimension that was not asked for");
    return static_cast<size_t>(found - request_.dimensions.begin());
  }

  void begin(uint64_t bytes) {
    const std::vector<PhaseChoice> all = phases(bytes, baseline());
    PhaseWalk walk(model_.topology(), bytes, all);
    for (const PhaseChoice& phase : all) {
      loads_.ticks[index_of(phase.dimension)] += model_.phase(phase, walk.next(phase)).delay_ticks;
    }
  }

  // Whether the loads differ by less than the time of a sixteenth of this chunk on the least loaded dimension. The time
  // is that of the whole chunk in a first reduce-scatter or a last all-gather.
  bool balanced(uint64_t bytes) {
    const auto [least, most] = std::ranges::minmax_element(loads_.ticks);
    const auto m = static_cast<size_t>(least - loads_.ticks.begin());
    const PhaseBytes whole{bytes, 1};
    const PhaseChoice choice = request_.algorithms.cheapest(kind_, request_.dimensions[m], whole);
    return Wide{*most - *least} * kThresholdDivisor < model_.phase(choice, whole).link_ticks;
  }

  void add(const ChunkSchedule& chunk) {
    PhaseWalk walk(model_.topology(), chunk.bytes, chunk.phases);
    for (const PhaseChoice& phase : chunk.phases) {
      const PhaseBytes bytes = walk.next(phase);
      if (phase.kind == kind_) loads_.ticks[index_of(phase.dimension)] += model_.phase(phase, bytes).link_ticks;
    }
  }

  PolicyRequest& request_;
  CostModel& model_;
  const bool gathers_;    // an all-gather alone
  const PhaseKind kind_;  // of the half that the loads decide
  ThemisLoads loads_;
};

}  // namespace

ThemisPlan themis_chunks(PolicyRequest& request) {
  return ThemisPlanner(request).plan();
}

PlannedSchedule plan_themis(PolicyRequest& request) {
  ThemisPlan plan = themis_chunks(request);
  return order_phases(request.bytes, std::move(plan.chunks), request.algorithms.model(), request.intra,
                      request.in_flight);
}

}  // namespace trestle
