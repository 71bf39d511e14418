#include "sched/model/second_level.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace trestle {
namespace {

StepsOptions as_the_engine() {
  StepsOptions options;
  options.rail_segments = true;
  options.losses = true;
  options.window = 4;  // segments of a step that the engine keeps in flight
  // Coarse, so that an evaluation takes 0.02 to 0.7 ms. For 4 MB to 1 GB in 1 to 64 chunks on nine systems the results
  // were within 0.1 % of the finest model, once 7 % off. With 8 segments one was 14 % off.
  options.most_segments = 32;
  return options;
}

// The rate that is assumed for an unknown network. It only decides which of two schedules is faster, so a round figure
// will do.
constexpr uint64_t kSlowMbps = 1000;

bool is_unknown(const Dimension& dimension) {
  return dimension.unknown_network && dimension.bandwidth_mbps == 0;
}

Topology with_slow_networks(Topology topology) {
  for (Dimension& dimension : topology.dimensions) {
    if (is_unknown(dimension)) dimension.bandwidth_mbps = kSlowMbps;
  }
  return topology;
}

}  // namespace

SecondLevel::SecondLevel(const Topology& topology, const BlockBytes& blocks)
    : model_(topology, as_the_engine(), blocks) {
  if (topology.dimensions.size() < 2 || std::ranges::none_of(topology.dimensions, is_unknown)) return;
  slow_.emplace(with_slow_networks(topology), as_the_engine(), blocks);
}

SecondLevel::SecondLevel(const Topology& topology, const StepsOptions& options, const ModelScale& scale,
                         uint64_t granule)
    : model_(topology, options), units_(Units{scale, granule}) {}

StepsResult SecondLevel::run(const Schedule& schedule) {
  ++evaluations_;
  StepsResult result = units_ ? model_.run(in_bytes(schedule, units_->scale, units_->granule)) : model_.run(schedule);
  CHECK(result.finished, "a schedule whose orders wait for each other");
  return result;
}

uint64_t SecondLevel::time_ps(const Schedule& schedule) {
  return run(schedule).time_ps;
}

void SecondLevel::judge(std::vector<PlannedSchedule>& schedules, size_t most) {
  std::vector<size_t> best(schedules.size());
  std::iota(best.begin(), best.end(), size_t{0});
  std::ranges::stable_sort(best, {}, [&](size_t i) { return schedules[i].time_ticks; });
  if (best.size() > most) best.resize(most);
  std::ranges::sort(best);
  std::vector<PlannedSchedule> judged;
  for (const size_t i : best) {
    PlannedSchedule& planned = judged.emplace_back(std::move(schedules[i]));
    planned.phases_ticks = planned.time_ticks;
    planned.time_ticks = time_ps(planned.schedule);
    if (slow_) planned.slow_ticks = slow_->run(planned.schedule).time_ps;
  }
  schedules = std::move(judged);
}

}  // namespace trestle
