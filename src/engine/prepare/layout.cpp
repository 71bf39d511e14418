#include "engine/prepare/layout.h"

#include <algorithm>

namespace trestle {

std::vector<ElementRange> consecutive_ranges(const std::vector<uint64_t>& counts) {
  std::vector<ElementRange> ranges;
  uint64_t begin = 0;
  for (const uint64_t count : counts) {
    ranges.push_back({begin, count});
    begin += count;
  }
  return ranges;
}

namespace {

// Element boundary `index` when `length` elements are cut in the proportions of the schedule's chunks; on cache lines
// where possible.
uint64_t boundary(const Schedule& schedule, uint32_t index, uint64_t length, uint32_t element_bytes) {
  if (index == 0) return 0;
  if (index >= schedule.chunks.size() || schedule.bytes == 0) return length;
  uint64_t before = 0;
  for (uint32_t k = 0; k < index; ++k) before += schedule.chunks[k].bytes;
  auto at = static_cast<uint64_t>(static_cast<unsigned __int128>(length) * before / schedule.bytes);
  const uint64_t line = std::max<uint64_t>(1, 64 / element_bytes);
  if (length >= 4 * line * schedule.chunks.size()) at -= at % line;
  return at;
}

ElementRange slice(const Schedule& schedule, uint32_t chunk, ElementRange whole, uint32_t element_bytes) {
  const uint64_t begin = boundary(schedule, chunk, whole.count, element_bytes);
  const uint64_t end = boundary(schedule, chunk + 1, whole.count, element_bytes);
  return {whole.offset + begin, end - begin};
}

// Position of a rank's unit in a contiguous chunk: a mixed-radix number, in the order in which the chunk's phases split
// the data.
uint32_t split_position(const Topology& topology, const std::vector<uint8_t>& order, int32_t rank) {
  uint32_t position = 0;
  for (uint8_t d : order) position = position * topology.group_size(d) + topology.coordinate(rank, d);
  return position;
}

std::vector<uint8_t> split_order(const Topology& topology, const ChunkSchedule& chunk) {
  std::vector<uint8_t> order;
  for (const PhaseChoice& phase : chunk.phases) {
    if (phase.kind == PhaseKind::kReduceScatter && phase.dimension != kFlat) order.push_back(phase.dimension);
  }
  for (uint8_t d = 0; d < topology.dimensions.size(); ++d) {
    if (std::find(order.begin(), order.end(), d) == order.end()) order.push_back(d);
  }
  return order;
}

}  // namespace

std::vector<ElementRange> chunk_units(const Schedule& schedule, uint32_t chunk, const Topology& topology,
                                      uint64_t elements, uint32_t element_bytes, ChunkCut cut) {
  const int32_t ranks = topology.ranks();
  std::vector<ElementRange> units(ranks);
  if (cut == ChunkCut::kCanonical) {
    for (int32_t r = 0; r < ranks; ++r) {
      units[r] = slice(schedule, chunk, nth_range(elements, ranks, r), element_bytes);
    }
    return units;
  }
  const ElementRange whole = slice(schedule, chunk, {0, elements}, element_bytes);
  const std::vector<uint8_t> order = split_order(topology, schedule.chunks[chunk]);
  for (int32_t r = 0; r < ranks; ++r) {
    const ElementRange part = nth_range(whole.count, ranks, split_position(topology, order, r));
    units[r] = {whole.offset + part.offset, part.count};
  }
  return units;
}

std::vector<ElementRange> chunk_units(const Schedule& schedule, uint32_t chunk, const std::vector<ElementRange>& shards,
                                      uint32_t element_bytes) {
  std::vector<ElementRange> units;
  units.reserve(shards.size());
  for (const ElementRange& shard : shards) units.push_back(slice(schedule, chunk, shard, element_bytes));
  return units;
}

std::vector<int32_t> block_units(const Topology& topology, int32_t rank, uint8_t dimension, uint32_t done, int32_t j) {
  if (dimension == kFlat) return {j};
  // Grows the list dimension by dimension, innermost first, so that it is ascending. It visits only the ranks of the
  // result, which matters when a thousand simulated ranks ask.
  std::vector<int32_t> units = {0};
  int32_t stride = 1;
  for (uint8_t d = 0; d < topology.dimensions.size(); ++d) {
    const int32_t size = topology.dimensions[d].size;
    const bool split = (done >> d & 1u) != 0;
    if (split && d == dimension && topology.coordinate(rank, d) != j) return {};
    if (split || d == dimension) {
      const int32_t fixed = d == dimension ? j : topology.coordinate(rank, d);
      for (int32_t& unit : units) unit += fixed * stride;
    } else {
      const size_t before = units.size();
      units.reserve(before * static_cast<size_t>(size));
      for (int32_t c = 1; c < size; ++c) {
        for (size_t i = 0; i < before; ++i) units.push_back(units[i] + c * stride);
      }
    }
    stride *= size;
  }
  return units;
}

std::vector<ElementRange> resident_ranges(const Topology& topology, int32_t rank, uint32_t done,
                                          const std::vector<ElementRange>& units) {
  std::vector<ElementRange> held;
  for (int32_t r = 0; r < topology.ranks(); ++r) {
    if (units[r].count != 0 && takes_part(topology, done, r, rank)) held.push_back(units[r]);
  }
  std::sort(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  std::vector<ElementRange> joined;
  for (const ElementRange& range : held) {
    if (!joined.empty() && joined.back().offset + joined.back().count == range.offset) {
      joined.back().count += range.count;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

std::vector<ElementRange> cut_ranges(const std::vector<ElementRange>& ranges, ElementRange part) {
  std::vector<ElementRange> result;
  uint64_t at = 0;
  for (const ElementRange& range : ranges) {
    const uint64_t begin = std::max(at, part.offset);
    const uint64_t end = std::min(at + range.count, part.offset + part.count);
    if (begin < end) result.push_back({range.offset + begin - at, end - begin});
    at += range.count;
  }
  return result;
}

std::vector<UnitRange> part_of_units(const std::vector<int32_t>& block, const std::vector<ElementRange>& units,
                                     uint32_t parts, uint32_t part) {
  uint64_t elements = 0;
  for (const int32_t unit : block) elements += units[static_cast<size_t>(unit)].count;
  const ElementRange wanted = nth_range(elements, parts, part);
  std::vector<UnitRange> result;
  uint64_t at = 0;
  for (const int32_t unit : block) {
    const ElementRange& whole = units[static_cast<size_t>(unit)];
    const uint64_t begin = std::max(at, wanted.offset);
    const uint64_t end = std::min(at + whole.count, wanted.offset + wanted.count);
    if (begin < end) result.push_back({unit, {whole.offset + begin - at, end - begin}});
    at += whole.count;
  }
  return result;
}

bool takes_part(const Topology& topology, uint32_t rooted, int32_t rank, int32_t root) {
  for (uint8_t d = 0; d < topology.dimensions.size(); ++d) {
    if ((rooted >> d & 1u) != 0 && topology.coordinate(rank, d) != topology.coordinate(root, d)) return false;
  }
  return true;
}

}  // namespace trestle
