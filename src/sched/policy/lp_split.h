// LP-split: every order of dimensions carries the share of the data that a linear programme gives it, so that the most
// loaded link or shared resource carries as little as possible; chunks of unequal size realise the shares exactly.
// Pure, any thread.
//
// The programme has D! * D! columns. They are generated: starting with one order per first dimension, the duals of the
// programme so far weigh the links, the cheapest order under these weights joins, until none is cheaper than the
// programme's value (Dantzig and Wolfe, "Decomposition principle for linear programs", 1960). The weighted cost of the
// cheapest order is a lower bound of what any shares can reach, so the distance to the optimum is known.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/policy/order_loads.h"

namespace trestle {

struct Split {
  std::vector<ChunkOrders> orders;  // bytes unset
  std::vector<uint64_t> shares;     // of kWhole (sched/policy/balance.h)
  uint64_t heaviest_ticks = 0;      // load of the most loaded row
  uint64_t bound_ticks = 0;         // of the most loaded row, for any shares of any orders
};

Split split_over_orders(const OrderLoads& loads);

// How chunks may be cut.
struct ChunkGrain {
  uint64_t granule = 1;       // sizes are multiples of it, the last one takes the rest
  uint64_t fewest_bytes = 1;  // of a chunk, as far as the total allows
};

// Chunks that realise the shares: at most `count`, orders interleaved, the chunks of one order alike. Orders whose
// share is too small for a chunk give it to the others.
std::vector<ChunkOrders> cut_chunks(const Split& split, uint64_t bytes, uint32_t count, ChunkGrain grain);

}  // namespace trestle
