#include "sched/policy/lp_split.h"

#include <algorithm>

#include "base/wide.h"
#include "sched/policy/balance.h"

namespace trestle {
namespace {

constexpr size_t kMostColumns = 64;
// The search ends within 1 / kCloseEnough of the bound.
constexpr uint64_t kCloseEnough = uint64_t{1} << 20;

// One order per first dimension, with the others from the innermost out. The all-gather is in reverse.
std::vector<ChunkOrders> first_columns(const OrderLoads& loads) {
  std::vector<ChunkOrders> columns;
  const size_t count = loads.dimensions();
  for (size_t first = 0; first < count; ++first) {
    ChunkOrders orders = loads.baseline();
    std::rotate(orders.scatter.begin(), orders.scatter.begin() + static_cast<ptrdiff_t>(first),
                orders.scatter.begin() + static_cast<ptrdiff_t>(first) + 1);
    std::reverse_copy(orders.scatter.begin(), orders.scatter.begin() + static_cast<ptrdiff_t>(count),
                      orders.gather.begin());
    columns.push_back(orders);
  }
  return columns;
}

uint64_t weighted(const Loads& loads, const Loads& weights, size_t rows) {
  Wide sum = 0;
  for (size_t r = 0; r < rows; ++r) sum += Wide{loads[r]} * weights[r];
  return static_cast<uint64_t>(sum / kWhole);
}

// The number of chunks per order, by highest averages (D'Hondt), so that the largest chunk is as small as possible. No
// order gets so many that its chunks are smaller than `fewest` of kWhole.
std::vector<uint32_t> seats(const std::vector<uint64_t>& shares, uint32_t count, uint64_t fewest) {
  std::vector<uint32_t> seats(shares.size(), 0);
  uint32_t given = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    seats[i] = 1;
    ++given;
  }
  for (; given < count; ++given) {
    size_t best = 0;
    for (size_t i = 1; i < shares.size(); ++i) {
      if (seats[i] != 0 && (seats[best] == 0 || shares[i] * seats[best] > shares[best] * seats[i])) best = i;
    }
    if (shares[best] / (seats[best] + 1) < fewest) break;
    ++seats[best];
  }
  return seats;
}

// Drops orders until the remaining ones fit in `count` chunks of at least `fewest` of kWhole.
void drop_small(std::vector<uint64_t>& shares, uint32_t count, uint64_t fewest) {
  for (;;) {
    size_t smallest = shares.size();
    uint32_t used = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] == 0) continue;
      ++used;
      if (smallest == shares.size() || shares[i] <= shares[smallest]) smallest = i;
    }
    if (used <= 1 || (used <= count && shares[smallest] >= fewest)) return;
    shares[smallest] = 0;
    uint64_t left = 0;
    for (const uint64_t share : shares) left += share;
    uint64_t given = 0;
    size_t largest = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] > shares[largest]) largest = i;
    }
    for (uint64_t& share : shares) {
      share = static_cast<uint64_t>(Wide{share} * kWhole / left);
      given += share;
    }
    shares[largest] += kWhole - given;
  }
}

// Rounding may leave a chunk a unit too short. The largest chunk gives it that unit.
void raise_small(std::vector<ChunkOrders>& chunks, uint64_t fewest_units) {
  for (ChunkOrders& chunk : chunks) {
    while (chunk.bytes < fewest_units) {
      ChunkOrders& largest = *std::ranges::max_element(chunks, {}, &ChunkOrders::bytes);
      if (largest.bytes <= fewest_units) return;
      --largest.bytes;
      ++chunk.bytes;
    }
  }
}

struct Place {
  uint64_t at;  // of kWhole
  size_t order;
};

// The j-th of n chunks of an order gets position (2j + 1) / 2n, so every stretch of the list has each order's share.
std::vector<Place> interleave(const std::vector<uint32_t>& seats) {
  std::vector<Place> places;
  for (size_t i = 0; i < seats.size(); ++i) {
    for (uint64_t j = 0; j < seats[i]; ++j) places.push_back({(2 * j + 1) * kWhole / (2 * seats[i]), i});
  }
  std::ranges::stable_sort(places, {}, &Place::at);
  return places;
}

}  // namespace

Split split_over_orders(const OrderLoads& loads) {
  Split split;
  split.orders = first_columns(loads);
  std::vector<Loads> columns;
  for (const ChunkOrders& orders : split.orders) columns.push_back(loads.of(orders.scatter, orders.gather));
  for (;;) {
    Balance balanced = balance(columns, loads.rows());
    split.shares = std::move(balanced.shares);
    split.heaviest_ticks = heaviest(columns, split.shares, loads.rows());
    const ChunkOrders orders = loads.cheapest(balanced.weights);
    const Loads column = loads.of(orders.scatter, orders.gather);
    split.bound_ticks = std::max(split.bound_ticks, weighted(column, balanced.weights, loads.rows()));
    const uint64_t close = split.heaviest_ticks - split.heaviest_ticks / kCloseEnough;
    if (split.bound_ticks >= close || columns.size() == kMostColumns) return split;
    if (std::ranges::find(split.orders, orders) != split.orders.end()) return split;
    split.orders.push_back(orders);
    columns.push_back(column);
  }
}

std::vector<ChunkOrders> cut_chunks(const Split& split, uint64_t bytes, uint32_t count, ChunkGrain grain) {
  const uint64_t units = std::max<uint64_t>(1, bytes / grain.granule);
  const uint64_t fewest_units =
      std::clamp<uint64_t>((grain.fewest_bytes + grain.granule - 1) / grain.granule, 1, units);
  const auto most_chunks = static_cast<uint32_t>(std::clamp<uint64_t>(units / fewest_units, 1, std::max(count, 1u)));
  const auto fewest = static_cast<uint64_t>(Wide{fewest_units} * kWhole / units);
  std::vector<uint64_t> shares = split.shares;
  drop_small(shares, most_chunks, fewest);
  const std::vector<uint32_t> seated = seats(shares, most_chunks, fewest);
  std::vector<ChunkOrders> chunks;
  uint64_t until = 0;  // of kWhole
  uint64_t given = 0;  // units
  for (const Place& place : interleave(seated)) {
    until += shares[place.order] / seated[place.order];
    const auto end = static_cast<uint64_t>(Wide{until} * units / kWhole);
    chunks.push_back(split.orders[place.order]);
    chunks.back().bytes = end - given;
    given = end;
  }
  chunks.back().bytes += units - given;
  raise_small(chunks, fewest_units);
  for (ChunkOrders& chunk : chunks) chunk.bytes *= grain.granule;
  chunks.back().bytes += bytes - units * grain.granule;
  if (units * grain.granule > bytes) chunks.back().bytes = bytes;
  return chunks;
}

}  // namespace trestle
