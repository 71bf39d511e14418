// ModelScale: the units of the cost model. Value type; pure functions, any thread.
//
// The library's model counts bytes and picoseconds and rounds up. The paper's model (Themis, arXiv 2110.04478) compares
// loads, sizes and times exactly, and its chunks need not have a whole number of bytes. So it counts *parts* of a byte
// and *ticks* of a nanosecond, chosen so that every size and every time is a whole number. Schedule::bytes and
// ChunkSchedule::bytes are then parts. The same code serves both models.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "sched/schedule.h"
#include "topology/topology.h"

namespace trestle {

struct ModelScale {
  uint64_t parts_per_byte = 1;
  uint64_t ticks_per_ns = 1000;
  bool exact = false;  // every time is a whole number of ticks; false: rounded up to one
  bool operator==(const ModelScale&) const = default;
};

// The scale in which an operation on `whole_bytes` in equal chunks is exact. whole_bytes is the whole data: before a
// reduce-scatter, after an all-gather. If the range allows it, the scale also has about 1000 multiples of the number of
// ranks in parts per chunk, for chunks of other sizes. If the bandwidths have no common unit that fits in 62 bits,
// ticks are as short as possible and `exact` is false. Then sums of the same phases are still equal, and only
// accidental ties get lost.
//
// Errors (kInvalidArgument): a dimension without bandwidth, times beyond 2^62 ns.
Result<ModelScale> paper_scale(const Topology& topology, uint64_t whole_bytes, uint32_t chunks);

// Converts a schedule from parts to bytes. Chunks end at multiples of `granule` if they are long enough.
Schedule in_bytes(const Schedule& schedule, const ModelScale& scale, uint64_t granule);

}  // namespace trestle
