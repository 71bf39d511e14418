// OrderLoads: the load that a chunk puts on every link and shared resource, for any order of dimensions. Owned by one
// planning call and used by its thread.
//
// The bytes of a phase depend on the set of dimensions that are already reduced, not on their order. So a table of 2^D
// * D entries per half holds the costs of all D!*D! orders. For given weights of the links the cheapest order is a
// shortest path through subsets (Held and Karp, "A dynamic programming approach to sequencing problems", 1962).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sched/policy/policies.h"

namespace trestle {

// Indices into PolicyRequest::dimensions, in the order of the phases of one half.
using HalfOrder = std::array<uint8_t, kMaxDimensions>;

// Ticks of the cost model per row: the links of PolicyRequest::dimensions first, then the shared resources.
inline constexpr size_t kMostRows = 2 * kMaxDimensions;
using Loads = std::array<uint64_t, kMostRows>;

struct ChunkOrders {
  uint64_t bytes = 0;  // as in ChunkSchedule::bytes
  HalfOrder scatter{};
  HalfOrder gather{};
  bool operator==(const ChunkOrders&) const = default;
};

class OrderLoads {
 public:
  // Algorithms are chosen for chunks of `typical_bytes`. The loads are those of request.bytes in `chunks` chunks: the
  // costs per chunk count for each chunk, the latency of a row's last phase counts once.
  OrderLoads(PolicyRequest& request, uint64_t typical_bytes, uint32_t chunks);

  // Lower bounds of the loads, for any chunks and algorithms: every cost is the least of all algorithms, and costs per
  // chunk count once.
  static OrderLoads lowest(PolicyRequest& request);

  size_t dimensions() const { return dimensions_.size(); }
  // The index in the topology.
  uint8_t dimension(size_t index) const { return dimensions_[index]; }
  size_t rows() const { return rows_; }
  bool scatters() const { return scatter_.used; }
  bool gathers() const { return gather_.used; }
  // The stage of the first phase of a half.
  size_t first_stage(bool scatter) const { return scatter || !scatter_.used ? 0 : dimensions_.size(); }
  // The sum of all latencies of a chunk.
  uint64_t latency_ticks() const { return latency_ticks_; }
  // The load if all bytes used these orders.
  Loads of(const HalfOrder& scatter, const HalfOrder& gather) const;
  // The orders of both halves with the least weighted load. Ties: the lowest dimension is reduced first.
  ChunkOrders cheapest(const Loads& weights) const;
  // Phases of a chunk, with algorithms.
  ChunkSchedule chunk(const ChunkOrders& orders) const;
  // The orders and the size of a chunk; the inverse of chunk(). A half that the request does not have gets the
  // baseline's order.
  ChunkOrders orders_of(const ChunkSchedule& chunk) const;
  // The order with the innermost dimension first, and back.
  ChunkOrders baseline() const;

 private:
  enum class Costs : uint8_t { kCheapest, kLowest };
  OrderLoads(PolicyRequest& request, uint64_t typical_bytes, uint32_t chunks, Costs costs);

  struct Entry {
    PhaseChoice choice;
    uint64_t link_ticks = 0;
    uint64_t resource_ticks = 0;
    uint64_t delay_ticks = 0;
  };
  struct Half {
    bool used = false;
    // [scattered * D + dimension]. `scattered`: the dimensions reduced before, or gathered later.
    std::vector<Entry> entries;
  };

  void fill(Half& half, PhaseKind kind, PolicyRequest& request, uint64_t typical_bytes, Costs costs);
  void add_constants(const Half& half, CostModel& model, uint32_t chunks);
  const Entry& entry(const Half& half, uint32_t scattered, size_t d) const {
    return half.entries[scattered * dimensions_.size() + d];
  }
  HalfOrder cheapest_from_the_outside(const Half& half, const Loads& weights) const;

  std::vector<uint8_t> dimensions_;
  std::vector<size_t> resource_row_;  // by dimension; kMostRows: none
  std::array<size_t, 256> row_of_resource_;
  size_t rows_ = 0;
  // By link: the time from the end of its last phase on the link to that phase's completion.
  std::array<uint64_t, kMaxDimensions> delays_;
  uint64_t latency_ticks_ = 0;
  Loads constants_{};
  Half scatter_;
  Half gather_;
};

}  // namespace trestle
