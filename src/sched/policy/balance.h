// The linear programme of LP-split: shares of the data for the columns (orders) that minimise the load of the most
// loaded row (link or shared resource). Pure, any thread.
//
// It is a matrix game (von Neumann): minimise over shares the maximum over rows of sum_j share_j * column_j[row]. The
// duals are weights of the rows. It is solved by the primal simplex method in fixed point, so that every rank pivots
// alike: largest coefficient first, ties by lowest index, and after some pivots Bland's rule ("New finite pivoting
// rules for the simplex method", 1977), which cannot cycle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/policy/order_loads.h"

namespace trestle {

inline constexpr uint64_t kWhole = uint64_t{1} << 30;

struct Balance {
  std::vector<uint64_t> shares;  // per column, their sum is kWhole; at most as many are above 0 as there are rows
  // Per row; their sum is kWhole except for rounding. All are 0 if a column has no load.
  Loads weights{};
};

// Needs at least one column and one row. The shares are within about 2^-20 of the optimum. Rounding never makes them
// invalid.
Balance balance(std::span<const Loads> columns, size_t rows);
// The load of the most loaded row with these shares of the columns, in ticks, rounded up.
uint64_t heaviest(std::span<const Loads> columns, std::span<const uint64_t> shares, size_t rows);

}  // namespace trestle
