// The cost of a small collective over the board (engine/express/express.h), where no schedule is made: every rank
// publishes its slot, reads those of the others and puts together what it read.
//
//   time = r * (call + (n - 1) * line) + turns + published * write + fetched * read + combined * add or copy
//
// for n ranks, r of which share a processor (there these work one after another: what each of them does counts r
// times). An alpha-beta model as sched/model/cost.h's, whose messages are cache lines. Pure, integers, any thread.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace trestle {

// Bytes of the longest slot; count_bytes: of what the call counts, for the halves of a separated all-reduce of the
// whole vector.
inline uint64_t published_bytes(Collective collective, uint64_t count_bytes, uint64_t ranks, bool half) {
  if (half) return count_bytes;
  return row_of(collective).sent.extent == BufferExtent::kCountPerRank ? count_bytes * ranks : count_bytes;
}

struct BoardOperation {
  Collective collective = Collective::kAllReduce;  // one that goes over the board
  uint64_t count_bytes = 0;                        // of what the call counts
  int32_t ranks = 1;
  int32_t ranks_per_processor = 1;  // topology/topology.h
};

// From the call to its return on the rank that takes longest, picoseconds, back to back with others of its kind.
uint64_t board_time_ps(const BoardOperation& operation);

}  // namespace trestle
