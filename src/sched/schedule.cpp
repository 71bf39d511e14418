#include "sched/schedule.h"

#include "algorithms/catalog.h"
#include "base/hash.h"

namespace trestle {

std::string_view algorithm_name(const PhaseChoice& phase) {
  return phase.algorithm < algorithms().size() ? algorithms()[phase.algorithm].name : "?";
}

namespace {

std::string dimension_text(uint8_t dimension) {
  return dimension == kFlat ? "all ranks" : "dimension " + std::to_string(dimension + 1);
}

std::string phase_text(const PhaseChoice& phase, const Topology& topology) {
  const std::string name(algorithm_name(phase));
  const bool known = phase.dimension == kFlat || phase.dimension < topology.dimensions.size();
  const std::string size =
      known ? " of " + std::to_string(topology.group_size(phase.dimension)) : " that does not exist";
  return std::string(to_string(phase.kind)) + " over " + dimension_text(phase.dimension) + size + " by " + name;
}

// Names the groups that take part in a phase, if not all do.
std::string groups_text(const std::vector<PhaseChoice>& phases, size_t stage) {
  const uint32_t rooted = rooted_dimensions(phases, stage);
  std::string text;
  for (uint8_t d = 0; d < kMaxDimensions; ++d) {
    if ((rooted >> d & 1u) != 0) text += (text.empty() ? ", where " : ", ") + dimension_text(d);
  }
  return text.empty() ? text : text + " is the root's";
}

}  // namespace

uint32_t rooted_dimensions(const std::vector<PhaseChoice>& phases, size_t stage) {
  const PhaseKind kind = phases[stage].kind;
  const bool later = kind == PhaseKind::kBroadcast;
  if (!later && kind != PhaseKind::kReduce) return 0;
  uint32_t dimensions = 0;
  for (size_t s = later ? stage + 1 : 0; s < (later ? phases.size() : stage); ++s) {
    if (phases[s].kind == kind && phases[s].dimension != kFlat) dimensions |= 1u << phases[s].dimension;
  }
  return dimensions;
}

uint64_t hash(const Schedule& schedule) {
  Hasher hasher;
  hasher.integer(schedule.bytes).integer(schedule.chunks.size());
  for (const ChunkSchedule& chunk : schedule.chunks) {
    hasher.integer(chunk.bytes).integer(chunk.phases.size());
    for (const PhaseChoice& phase : chunk.phases) {
      hasher.integer(phase.dimension).integer(static_cast<uint64_t>(phase.kind)).integer(phase.algorithm);
    }
  }
  hasher.integer(schedule.orders.size());
  for (const DimensionOrder& order : schedule.orders) {
    hasher.integer(order.dimension).integer(order.in_flight).integer(order.order.size());
    for (const PhaseId& id : order.order) hasher.integer(id.chunk).integer(id.stage);
  }
  return hasher.digest();
}

std::string to_string(const Schedule& schedule, const Topology& topology) {
  const size_t chunks = schedule.chunks.size();
  std::string text =
      std::to_string(schedule.bytes) + " bytes in " + std::to_string(chunks) + (chunks == 1 ? " chunk\n" : " chunks\n");
  for (size_t k = 0; k < chunks;) {
    size_t end = k + 1;
    while (end < chunks && schedule.chunks[end] == schedule.chunks[k]) ++end;
    text += end - k == 1 ? "  chunk " + std::to_string(k)
                         : "  chunks " + std::to_string(k) + " to " + std::to_string(end - 1);
    text += ": " + std::to_string(schedule.chunks[k].bytes) + " bytes" + (end - k == 1 ? "\n" : " each\n");
    for (size_t s = 0; s < schedule.chunks[k].phases.size(); ++s) {
      const std::vector<PhaseChoice>& phases = schedule.chunks[k].phases;
      text += "    " + std::to_string(s) + " " + phase_text(phases[s], topology) + groups_text(phases, s) + "\n";
    }
    k = end;
  }
  for (const DimensionOrder& order : schedule.orders) {
    text += "  order of " + dimension_text(order.dimension) + ", " + std::to_string(order.in_flight) +
            " in flight (chunk.stage):";
    for (const PhaseId& id : order.order) {
      text.append(" ").append(std::to_string(id.chunk)).append(".").append(std::to_string(id.stage));
    }
    text += "\n";
  }
  return text;
}

}  // namespace trestle
