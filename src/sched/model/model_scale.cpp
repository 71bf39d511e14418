#include "sched/model/model_scale.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/wide.h"

namespace trestle {
namespace {

constexpr Wide kMostTicks = Wide{1} << 62;
constexpr Wide kMostParts = Wide{1} << 61;

Wide gcd(Wide a, Wide b) {
  while (b != 0) {
    a %= b;
    std::swap(a, b);
  }
  return a;
}

// The least common multiple; nothing if it exceeds kMostTicks.
std::optional<Wide> common(Wide a, Wide b) {
  const Wide factor = a / gcd(a, b);
  // The analyzer does not follow 128-bit values through optional.
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
  if (factor > kMostTicks / b) return std::nullopt;
  return factor * b;
}

// The smallest number of ticks per nanosecond that makes all times whole. A part takes 8000 / (mbps * parts_per_byte)
// ns on a link and ps_per_byte / (1000 * parts_per_byte) ns on a resource.
std::optional<Wide> exact_ticks(const Topology& topology, Wide parts_per_byte) {
  std::optional<Wide> ticks = Wide{1};
  const auto divide = [&](Wide above, Wide below) {
    if (ticks) ticks = common(*ticks, below / gcd(above, below));
  };
  for (const Dimension& dimension : topology.dimensions) {
    divide(8000, parts_per_byte * dimension.bandwidth_mbps);
    if (!dimension.shared_resource.empty()) divide(dimension.shared_ps_per_byte, parts_per_byte * 1000);
  }
  return ticks;
}

// An upper bound of the time of any schedule, in nanoseconds: all phases one after the other, each with the whole data.
// An operation has at most two phases per dimension and chunk.
Wide most_ns(const Topology& topology, uint64_t whole_bytes, uint32_t chunks) {
  Wide sum = 1;
  for (const Dimension& dimension : topology.dimensions) {
    sum += 2 * (Wide{whole_bytes} * 8000 / dimension.bandwidth_mbps + 1);
    sum += 2 * (Wide{whole_bytes} * dimension.shared_ps_per_byte / 1000 + 1);
    if (dimension.latency_ns == kNominalLatency) continue;
    sum += 2 * Wide{chunks} * dimension.latency_ns * static_cast<uint64_t>(dimension.size);
  }
  return sum;
}

}  // namespace

Result<ModelScale> paper_scale(const Topology& topology, uint64_t whole_bytes, uint32_t chunks) {
  whole_bytes = std::max<uint64_t>(whole_bytes, 1);
  CHECK(chunks > 0, "a scale for no chunks");
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    if (topology.dimensions[d].bandwidth_mbps != 0) continue;
    return Error{Code::kInvalidArgument,
                 "dimension " + std::to_string(d + 1) + ": the paper's model needs its bandwidth"};
  }
  const Wide longest_ns = most_ns(topology, whole_bytes, chunks);
  const auto ranks = static_cast<uint64_t>(topology.ranks());
  const Wide pieces = Wide{chunks} * ranks;
  Wide parts = pieces / gcd(pieces, whole_bytes);
  if (longest_ns >= kMostTicks || parts > kMostParts / whole_bytes) {
    return Error{Code::kInvalidArgument, "an operation on " + std::to_string(whole_bytes) + " bytes in " +
                                             std::to_string(chunks) + " chunks takes longer than the model can count"};
  }
  // Chunks of unequal sizes need finer parts than equal ones.
  static constexpr uint64_t kGranulesPerChunk = 1024;
  const Wide granules = Wide{whole_bytes} * parts / pieces;
  Wide finer = granules == 0 ? 1 : (kGranulesPerChunk + granules - 1) / granules;
  for (; finer >= 1; finer /= 2) {
    const auto ticks = exact_ticks(topology, parts * finer);
    if (!ticks || *ticks > kMostTicks / longest_ns || parts * finer > kMostParts / whole_bytes) continue;
    return ModelScale{static_cast<uint64_t>(parts * finer), static_cast<uint64_t>(*ticks), true};
  }
  return ModelScale{static_cast<uint64_t>(parts), static_cast<uint64_t>(kMostTicks / longest_ns), false};
}

Schedule in_bytes(const Schedule& schedule, const ModelScale& scale, uint64_t granule) {
  Schedule result = schedule;
  result.bytes = schedule.bytes / scale.parts_per_byte;
  uint64_t before_parts = 0;
  uint64_t before = 0;
  const bool cut = result.bytes >= 4 * granule * std::max<size_t>(1, schedule.chunks.size());
  for (ChunkSchedule& chunk : result.chunks) {
    before_parts += chunk.bytes;
    uint64_t end = before_parts / scale.parts_per_byte;
    if (cut && &chunk != &result.chunks.back()) end -= end % granule;
    end = std::max(end, before);
    chunk.bytes = end - before;
    before = end;
  }
  return result;
}

}  // namespace trestle
