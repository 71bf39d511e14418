// LP-split: the linear programme against brute force, generated columns against all columns, and chunks that realise
// the shares.
#include <gtest/gtest.h>

#include <cmath>

#include "sched/policy/balance.h"
#include "sched/policy/fluid_bound.h"
#include "sched/policy/lp_split.h"
#include "unit/sched/systems.h"

namespace trestle {
namespace lp_split_test {
namespace {

// Solves a * x = b of n equations. False: it is singular.
bool solve(std::vector<std::vector<double>> a, std::vector<double> b, std::vector<double>& x) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    size_t pivot = i;
    for (size_t r = i; r < n; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    if (std::abs(a[pivot][i]) < 1e-12) return false;
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    for (size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (size_t c = i; c < n; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  x.resize(n);
  for (size_t i = 0; i < n; ++i) x[i] = b[i] / a[i][i];
  return true;
}

// The smallest load of the heaviest row. An optimal vertex makes as many rows equal as it has columns (Shapley and
// Snow, 1950).
double brute_force(const std::vector<Loads>& columns, size_t rows) {
  double best = 1e300;
  for (uint32_t cs = 1; cs < uint32_t{1} << columns.size(); ++cs) {
    for (uint32_t rs = 1; rs < uint32_t{1} << rows; ++rs) {
      const int count = __builtin_popcount(cs);
      if (__builtin_popcount(rs) != count) continue;
      std::vector<size_t> c_of, r_of;
      for (size_t c = 0; c < columns.size(); ++c)
        if ((cs >> c & 1) != 0) c_of.push_back(c);
      for (size_t r = 0; r < rows; ++r)
        if ((rs >> r & 1) != 0) r_of.push_back(r);
      // Unknowns: the shares, whose sum is one, and the common value.
      const size_t n = c_of.size() + 1;
      std::vector<std::vector<double>> a(n, std::vector<double>(n, 0));
      std::vector<double> b(n, 0), x;
      for (size_t i = 0; i + 1 < n; ++i) {
        for (size_t j = 0; j + 1 < n; ++j) a[i][j] = static_cast<double>(columns[c_of[j]][r_of[i]]) / 1e6;
        a[i][n - 1] = -1;
        a[n - 1][i] = 1;
      }
      b[n - 1] = 1;
      if (!solve(a, b, x)) continue;
      if (*std::min_element(x.begin(), x.end() - 1) < -1e-9) continue;
      double most = 0;
      for (size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (size_t j = 0; j + 1 < n; ++j) sum += x[j] * static_cast<double>(columns[c_of[j]][r]);
        most = std::max(most, sum);
      }
      best = std::min(best, most);
    }
  }
  return best;
}

TEST(Balance, IsAsGoodAsBruteForce) {
  Rng rng(3);
  for (int i = 0; i < 3000; ++i) {
    const size_t rows = 1 + rng.below(4);
    std::vector<Loads> columns(1 + rng.below(6));
    const uint64_t spread = rng.below(2) == 0 ? 10 : 1'000'000'000;
    for (Loads& column : columns) {
      for (size_t r = 0; r < rows; ++r) column[r] = 1'000'000 * (rng.below(8) == 0 ? 0 : 1 + rng.below(spread));
    }
    const Balance result = balance(columns, rows);
    uint64_t sum = 0;
    for (const uint64_t share : result.shares) sum += share;
    ASSERT_EQ(sum, kWhole);
    const double value = static_cast<double>(heaviest(columns, result.shares, rows));
    const double expected = brute_force(columns, rows);
    ASSERT_LE(value, expected * (1 + 1e-5) + 1) << "case " << i;
    ASSERT_GE(value, expected * (1 - 1e-5) - 1) << "case " << i;
  }
}

TEST(Balance, OneColumnOneRowAndNothingAtAll) {
  EXPECT_EQ(balance(std::vector<Loads>{{7}}, 1).shares, std::vector<uint64_t>{kWhole});
  EXPECT_EQ(balance(std::vector<Loads>{{0}, {0}}, 2).shares.size(), 2u);
  // If there is one row, the better column gets everything.
  EXPECT_EQ(balance(std::vector<Loads>{{7}, {5}}, 1).shares, (std::vector<uint64_t>{0, kWhole}));
}

// Uses all orders as columns, with the all-gather in reverse.
uint64_t with_all_orders(const OrderLoads& loads) {
  ChunkOrders orders = loads.baseline();
  const auto count = static_cast<ptrdiff_t>(loads.dimensions());
  std::vector<Loads> columns;
  do {
    std::reverse_copy(orders.scatter.begin(), orders.scatter.begin() + count, orders.gather.begin());
    columns.push_back(loads.of(orders.scatter, orders.gather));
  } while (std::next_permutation(orders.scatter.begin(), orders.scatter.begin() + count));
  return heaviest(columns, balance(columns, loads.rows()).shares, loads.rows());
}

TEST(LpSplit, GeneratedColumnsReachWhatAllColumnsReach) {
  Rng rng(5);
  for (int i = 0; i < 300; ++i) {
    PolicyCase test(random_topology(rng, 2, 4), nullptr);
    test.cut(1 + rng.below(1 << 28), 8, 1);
    const OrderLoads loads(test.request(), test.request().bytes / 8, 8);
    const Split split = split_over_orders(loads);
    const auto reached = static_cast<double>(split.heaviest_ticks);
    EXPECT_LE(static_cast<double>(split.bound_ticks), reached);
    EXPECT_LE(reached, static_cast<double>(with_all_orders(loads)) * (1 + 1e-5) + 1) << to_text(test.topology());
  }
}

TEST(LpSplit, ManyDimensionsAreNearTheirBoundWithFewOrders) {
  Rng rng(7);
  for (int i = 0; i < 60; ++i) {
    PolicyCase test(random_topology(rng, 5, 7), nullptr);
    test.cut(1 << 28, 8, 1);
    const OrderLoads loads(test.request(), test.request().bytes / 8, 8);
    const Split split = split_over_orders(loads);
    EXPECT_LE(split.orders.size(), 64u);
    EXPECT_LE(static_cast<double>(split.heaviest_ticks), static_cast<double>(split.bound_ticks) * 1.001 + 1)
        << to_text(test.topology());
  }
}

TEST(LpSplit, TheHeaviestSharedResourceIsARow) {
  // Two links of the same speed share a memory that is ten times slower, so the memory limits.
  Topology topology;
  for (const int32_t size : {2, 8}) topology.dimensions.push_back(paper_dimension(size, DimensionKind::kSwitch, 80, 0));
  for (Dimension& each : topology.dimensions) {
    each.shared_resource = "memory";
    each.shared_ps_per_byte = 1000;
  }
  PolicyCase test(topology, nullptr);
  test.cut(1 << 26, 8, 1);
  const OrderLoads loads(test.request(), 1 << 23, 8);
  ASSERT_EQ(loads.rows(), 3u);
  const Split split = split_over_orders(loads);
  std::vector<Loads> columns;
  for (const ChunkOrders& orders : split.orders) columns.push_back(loads.of(orders.scatter, orders.gather));
  // The bytes that cross the memory do not depend on the order: 2 * 15/16 of all.
  EXPECT_NEAR(static_cast<double>(split.heaviest_ticks), 2.0 * 15 / 16 * (1 << 26) * 1000, 1e-3 * (1 << 26) * 2000);
  EXPECT_EQ(split.heaviest_ticks, heaviest(columns, split.shares, 3));
}

TEST(CutChunks, RealiseTheSharesInWholeGranules) {
  Rng rng(9);
  for (int i = 0; i < 2000; ++i) {
    Split split;
    split.orders.resize(1 + rng.below(5));
    split.shares.assign(split.orders.size(), 0);
    uint64_t left = kWhole;
    for (size_t o = 0; o < split.orders.size(); ++o) {
      split.orders[o].scatter[0] = static_cast<uint8_t>(o);
      split.shares[o] = o + 1 == split.orders.size() ? left : rng.below(left + 1);
      left -= split.shares[o];
    }
    const ChunkGrain grain{1 + rng.below(100), 1 + rng.below(5000)};
    const uint64_t bytes = rng.below(i % 10 == 0 ? 100 : 10'000'000);
    const auto count = static_cast<uint32_t>(1 + rng.below(64));
    const auto chunks = cut_chunks(split, bytes, count, grain);
    ASSERT_FALSE(chunks.empty());
    ASSERT_LE(chunks.size(), count);
    uint64_t sum = 0;
    for (const ChunkOrders& chunk : chunks) {
      sum += chunk.bytes;
      if (&chunk != &chunks.back()) {
        EXPECT_EQ(chunk.bytes % grain.granule, 0u);
      }
      if (chunks.size() > 1) {
        EXPECT_GE(chunk.bytes, grain.fewest_bytes / grain.granule * grain.granule);
      }
      if (chunks.size() > 1) {
        EXPECT_GT(chunk.bytes, 0u);
      }
    }
    ASSERT_EQ(sum, bytes);
    if (bytes / grain.granule < 1'000'000 || bytes / count < grain.fewest_bytes) continue;
    // Shares must be right within a unit per chunk.
    for (size_t o = 0; o < split.orders.size() && split.orders.size() <= count / 8; ++o) {
      uint64_t mine = 0;
      for (const ChunkOrders& chunk : chunks) mine += chunk.scatter[0] == o ? chunk.bytes : 0;
      const double share = static_cast<double>(split.shares[o]) / static_cast<double>(kWhole);
      if (share * count > 1) {
        EXPECT_NEAR(static_cast<double>(mine) / static_cast<double>(bytes), share, 0.05);
      }
    }
  }
}

TEST(FluidBound, IsTheIdealTimeWhereEveryLinkCanBeKeptBusy) {
  for (const PaperSystem& system : paper_systems()) {
    PolicyCase test = paper_case(to_topology(system), uint64_t{1000} << 20, 64);
    const double bound_ns =
        static_cast<double>(fluid_bound_ticks(test.request())) / static_cast<double>(test.model().scale().ticks_per_ns);
    const double ideal = ideal_ns(to_topology(system), uint64_t{1000} << 20, true);
    EXPECT_GE(bound_ns, ideal * 0.999999) << system.name;
    EXPECT_LE(bound_ns, ideal * 1.002) << system.name;  // latencies
  }
}

}  // namespace
}  // namespace lp_split_test
}  // namespace trestle
