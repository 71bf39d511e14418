// The linear programme behind LP-split: shares of the data for the columns (orders) such that the most loaded row (link
// or shared resource) carries as little as possible. Pure, any thread.
//
// It is a matrix game (von Neumann): minimise over shares the maximum over rows of sum_j share_j * column_j[row]; the
// duals are weights of the rows. Solved by the primal simplex method in fixed point, so that every rank pivots alike:
// largest coefficient first, ties by lowest index, after some pivots Bland's rule ("New finite pivoting rules for the
// simplex method", 1977), which cannot cycle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/policy/order_loads.h"

namespace trestle {

inline constexpr uint64_t kWhole = uint64_t{1} << 30;

struct Balance {
  std::vector<uint64_t> shares;  // per column, sum kWhole; at most as many above 0 as there are rows
  Loads weights{};               // per row, sum kWhole but for rounding; all 0 where a column has no load
};

// At least one column and one row. Shares are within about 2^-20 of optimal; whatever rounding did, they are shares.
Balance balance(std::span<const Loads> columns, size_t rows);
// The most loaded row of shares of columns, ticks, rounded up.
uint64_t heaviest(std::span<const Loads> columns, std::span<const uint64_t> shares, size_t rows);

}  // namespace trestle
