// The cost of a small collective over the board (express/express.h), which has no schedule: every rank publishes
// its slot, reads the slots of the others and combines them.
//
//   time = r * (call + (n - 1) * line) + turns + published * write + fetched * read + combined * add or copy
//
// n is the number of ranks. r of them share a processor and work one after another, so the work of each counts r times.
// It is an alpha-beta model like that of sched/model/cost.h, with cache lines as messages. Pure, integers, any thread.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace trestle {

// Bytes of the longest slot. count_bytes: the bytes that the call's count stands for; for the halves of a separated
// all-reduce those of the whole vector.
inline uint64_t published_bytes(Collective collective, uint64_t count_bytes, uint64_t ranks, bool half) {
  if (half) return count_bytes;
  return row_of(collective).sent.extent == BufferExtent::kCountPerRank ? count_bytes * ranks : count_bytes;
}

struct BoardOperation {
  Collective collective = Collective::kAllReduce;  // must be one that uses the board
  uint64_t count_bytes = 0;                        // bytes that the call's count stands for
  int32_t ranks = 1;
  int32_t ranks_per_processor = 1;  // topology/topology.h
};

// Time from the call to its return on the slowest rank, in picoseconds, when such calls follow each other at once.
uint64_t board_time_ps(const BoardOperation& operation);

}  // namespace trestle
