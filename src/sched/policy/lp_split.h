// LP-split: every order of dimensions carries the share of the data that a linear programme gives it, so that the load
// of the most loaded link or shared resource is minimal. Chunks of unequal size realise the shares exactly. Pure, any
// thread.
//
// The programme has D! * D! columns, so they are generated one by one. It starts with one order per first dimension.
// The duals of the current programme weigh the links, and the cheapest order under these weights is added, until none
// is cheaper than the programme's value (Dantzig and Wolfe, "Decomposition principle for linear programs", 1960). The
// weighted cost of the cheapest order is a lower bound for all shares, so the distance to the optimum is known.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/policy/order_loads.h"

namespace trestle {

struct Split {
  std::vector<ChunkOrders> orders;  // their bytes are not set
  std::vector<uint64_t> shares;     // of kWhole (sched/policy/balance.h)
  uint64_t heaviest_ticks = 0;      // load of the most loaded row
  uint64_t bound_ticks = 0;         // lower bound of it, for any shares of any orders
};

Split split_over_orders(const OrderLoads& loads);

// The rules for cutting chunks.
struct ChunkGrain {
  uint64_t granule = 1;       // sizes are multiples of it, except the last
  uint64_t fewest_bytes = 1;  // per chunk, if the total allows it
};

// Cuts chunks that realise the shares: at most `count`, with orders interleaved and equal chunks per order. An order
// whose share is too small for a chunk gives it to the others.
std::vector<ChunkOrders> cut_chunks(const Split& split, uint64_t bytes, uint32_t count, ChunkGrain grain);

}  // namespace trestle
