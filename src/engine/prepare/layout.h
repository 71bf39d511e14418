// Where the data of an operation lies: shards, chunk slices, and the units that the phases of a schedule move. Pure.
//
// The data of an operation is a vector V of `elements` elements, cut into one *shard* per rank. Shard r is the r-th of
// N equal ranges (where N does not divide, the first ranges are one element longer). In a v-variant the caller gives
// its length. There are two ways to cut chunks:
//   canonical:  Chunk k is the k-th slice of every shard. Shard r belongs to rank r, whatever the order of dimensions.
//               For collectives whose blocks are the user's (reduce-scatter, all-gather, the separated halves of an
//               all-reduce).
//   contiguous: Chunk k is the k-th slice of V, cut into N units in the order in which the chunk's own first phases
//               split it, so that every block is one piece. For an all-reduce whose halves are not separated.
//
// A *unit* (chunk, rank) is the part of chunk k that rank r holds after the reduce-scatter phases. A phase's block is a
// set of units. In an all-to-all over the dimensions, unit u is at first the data for rank u. A phase on dimension d
// sends the units whose coordinate d is j to the group's member j, and the received units take their places. From then
// on coordinate d of u is the sender's coordinate d. After the last phase u is the sender.
#pragma once

#include <cstdint>
#include <vector>

#include "base/element_range.h"
#include "sched/schedule.h"
#include "topology/topology.h"

namespace trestle {

// Unequal shards, one after the other.
std::vector<ElementRange> consecutive_ranges(const std::vector<uint64_t>& counts);

enum class ChunkCut : uint8_t { kCanonical, kContiguous };

// Ranges of V of all units of one chunk, indexed by rank.
std::vector<ElementRange> chunk_units(const Schedule& schedule, uint32_t chunk, const Topology& topology,
                                      uint64_t elements, uint32_t element_bytes, ChunkCut cut);
// Units of one chunk by the canonical cut, for shards that need not be equal.
std::vector<ElementRange> chunk_units(const Schedule& schedule, uint32_t chunk, const std::vector<ElementRange>& shards,
                                      uint32_t element_bytes);

// The units (ranks) of logical block j of a phase on `dimension`, for `rank`. The dimensions in `done` (bit mask) are
// already split, so the units have the rank's own coordinates there. Ascending.
std::vector<int32_t> block_units(const Topology& topology, int32_t rank, uint8_t dimension, uint32_t done, int32_t j);

// The parts of V that `rank` holds of a chunk whose data is split over the dimensions in `done`. Ascending, neighbours
// joined. Equal for all ranks that have the same coordinates in these dimensions.
std::vector<ElementRange> resident_ranges(const Topology& topology, int32_t rank, uint32_t done,
                                          const std::vector<ElementRange>& units);
// Elements [part.offset, part.offset + part.count) of the concatenated ranges.
std::vector<ElementRange> cut_ranges(const std::vector<ElementRange>& ranges, ElementRange part);

struct UnitRange {
  int32_t unit = 0;
  ElementRange range;  // of V
};
// The `part`-th of `parts` equal parts of the data of these units, one after the other.
std::vector<UnitRange> part_of_units(const std::vector<int32_t>& block, const std::vector<ElementRange>& units,
                                     uint32_t parts, uint32_t part);

// Whether a rank takes part in a phase that needs the root's coordinate in some dimensions (rooted_dimensions()).
bool takes_part(const Topology& topology, uint32_t rooted, int32_t rank, int32_t root);

}  // namespace trestle
