#include "sched/policy/fluid_bound.h"

#include <algorithm>

#include "sched/policy/lp_split.h"

namespace trestle {

uint64_t fluid_bound_ticks(PolicyRequest& request) {
  const OrderLoads loads = OrderLoads::lowest(request);
  return std::max(split_over_orders(loads).bound_ticks, loads.latency_ticks());
}

}  // namespace trestle
