// ModelScale: the units of the cost model. Value type; pure functions, any thread.
//
// The library's model counts bytes and picoseconds and rounds up. The paper's model (Themis, arXiv 2110.04478) compares
// loads, sizes and times exactly, and its chunks need not be a whole number of bytes; so it counts *parts* of a byte
// and *ticks* of a nanosecond, chosen so that every size and every time is a whole number. Schedule::bytes and
// ChunkSchedule::bytes are parts then. The same code does both.
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

// The scale in which an operation on `whole_bytes` (the data where it is whole: before a reduce-scatter, after an
// all-gather) in equal chunks is exact, with room for chunks of other sizes: multiples of the number of ranks in parts,
// where it fits some 1000 of them per chunk. Where bandwidths have no common unit that fits 62 bits, ticks are as short
// as fits, and `exact` is false: sums of the same phases are still equal, only accidental ties are lost.
// Errors (kInvalidArgument): a dimension without bandwidth, times beyond 2^62 ticks of a nanosecond.
Result<ModelScale> paper_scale(const Topology& topology, uint64_t whole_bytes, uint32_t chunks);

// A schedule whose sizes are parts, in bytes: the chunks end at multiples of `granule` where they are long enough.
Schedule in_bytes(const Schedule& schedule, const ModelScale& scale, uint64_t granule);

}  // namespace trestle
