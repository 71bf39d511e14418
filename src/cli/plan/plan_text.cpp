#include "cli/plan/plan_text.h"

#include <algorithm>
#include <cstdio>

#include "cli/sim/lanes_text.h"
#include "cli/sim/variants.h"

namespace trestle {
namespace {

const char* short_name(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::kReduceScatter:
      return "rs";
    case PhaseKind::kAllGather:
      return "ag";
    case PhaseKind::kAllReduce:
      return "ar";
    default:
      return to_string(kind);
  }
}

// For example "rs1 ring, rs2 hd, ag2 hd, ag1 ring".
std::string phases_text(const Schedule& schedule) {
  if (schedule.chunks.empty()) return "";
  const std::vector<PhaseChoice>& phases = schedule.chunks.front().phases;
  const bool alike = std::ranges::all_of(
      schedule.chunks, [&](const ChunkSchedule& chunk) { return std::ranges::equal(chunk.phases, phases); });
  if (!alike) return "each chunk has its own order";
  std::string text;
  for (const PhaseChoice& phase : phases) {
    const std::string where = phase.dimension == kFlat ? " over all ranks" : std::to_string(phase.dimension + 1);
    text += (text.empty() ? "" : ", ") + (short_name(phase.kind) + where) + " " + std::string(algorithm_name(phase));
  }
  return text;
}

std::string idle_text(const PlanCandidate& candidate, const Topology& topology) {
  const auto time_ps = static_cast<double>(candidate.prediction.time_ps);
  std::vector<double> idle(topology.dimensions.size(), 100);
  std::string text;
  char item[48];
  for (const PredictedLink& link : candidate.prediction.links) {
    const double percent = time_ps > 0 ? 100 * (1 - static_cast<double>(link.busy_ps) / time_ps) : 0;
    if (link.dimension < idle.size()) {
      idle[link.dimension] = percent;
      continue;
    }
    std::snprintf(item, sizeof item, " all ranks %.1f %%", percent);
    text += item;
  }
  if (!text.empty()) return text;
  for (size_t d = 0; d < idle.size(); ++d) {
    std::snprintf(item, sizeof item, " %zu: %5.1f %%", d + 1, idle[d]);
    text += item;
  }
  return text;
}

bool is_configured(const ScheduleVariant& variant, const SelectionConfig& config) {
  return variant.policy == config.policy && (!variant.open || variant.intra == config.intra);
}

SimLane lane_of(const PlanCandidate& candidate, size_t l, const Topology& topology) {
  const DimensionOrder& order = candidate.schedule.orders[l];
  const PredictedLink& link = candidate.prediction.links[l];
  SimLane lane;
  lane.dimension = order.dimension;
  lane.name = lane_name(topology, order.dimension);
  lane.busy_ns = static_cast<double>(link.busy_ps) / 1000;
  for (size_t i = 0; i < order.order.size(); ++i) {
    const PhaseId id = order.order[i];
    lane.phases.push_back({id, candidate.schedule.chunks[id.chunk].phases[id.stage].kind,
                           static_cast<double>(link.times[i].start_ticks) / 1000,
                           static_cast<double>(link.times[i].left_ticks) / 1000});
  }
  return lane;
}

}  // namespace

Result<std::vector<PlanCandidate>> plan_candidates(const SelectionRequest& request, const Topology& topology,
                                                   const SelectionConfig& config) {
  std::vector<PlanCandidate> all;
  for (const ScheduleVariant& variant : explained_variants()) {
    const bool configured = is_configured(variant, config);
    SelectionConfig of_variant = config;
    of_variant.policy = variant.policy;
    of_variant.intra = variant.open ? variant.intra : config.intra;
    for (SelectionCandidate& candidate : TRY(selection_candidates(request, topology, of_variant))) {
      if (!configured && !candidate.ordered) continue;  // they are in the configured policy's list
      PlanCandidate& added = all.emplace_back();
      added.policy = candidate.ordered ? variant.name : "";
      added.chosen = configured && candidate.chosen;
      added.prediction = predict(candidate.schedule, topology, request.blocks);
      added.schedule = std::move(candidate.schedule);
    }
  }
  std::ranges::stable_sort(all, {}, [](const PlanCandidate& c) { return c.prediction.time_ps; });
  return all;
}

std::string candidates_text(const std::vector<PlanCandidate>& candidates, const Topology& topology) {
  std::string text = "candidates of the configured policy and of the other policies (*: chosen):\n";
  size_t widest = 6;
  for (const PlanCandidate& candidate : candidates) widest = std::max(widest, phases_text(candidate.schedule).size());
  char line[512];
  std::snprintf(line, sizeof line, "   %12s %6s %6s  %-14s %-*s %s\n", "predicted us", "times", "chunks", "policy",
                static_cast<int>(widest), "phases", " links idle, by dimension");
  text += line;
  const double best_ps = candidates.empty() ? 1 : static_cast<double>(candidates.front().prediction.time_ps);
  for (const PlanCandidate& candidate : candidates) {
    const auto time_ps = static_cast<double>(candidate.prediction.time_ps);
    std::snprintf(line, sizeof line, " %c %12.1f %6.2f %6zu  %-14s %-*s ", candidate.chosen ? '*' : ' ', time_ps / 1e6,
                  best_ps > 0 ? time_ps / best_ps : 1, candidate.schedule.chunks.size(), candidate.policy.c_str(),
                  static_cast<int>(widest), phases_text(candidate.schedule).c_str());
    text += line + idle_text(candidate, topology) + "\n";
  }
  return text;
}

std::string picture_text(const PlanCandidate& candidate, const Topology& topology) {
  std::vector<SimLane> lanes;
  for (size_t l = 0; l < candidate.schedule.orders.size(); ++l) lanes.push_back(lane_of(candidate, l, topology));
  return "chunks on the links over time (above: which chunk; below: > reduce-scatter, < all-gather, = another "
         "kind):\n" +
         lanes_text(lanes, static_cast<double>(candidate.prediction.time_ps) / 1000, kPictureWidth);
}

}  // namespace trestle
