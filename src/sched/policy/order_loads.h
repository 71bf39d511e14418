// OrderLoads: what a chunk that goes over the dimensions in some order puts on every link and every shared resource.
// Owned by one planning call and used by its thread.
//
// How many bytes a phase has depends on which dimensions are reduced, not on the order in which they were. So the costs
// of all D!*D! orders are in a table of 2^D * D entries per half, and the cheapest order for given weights of the links
// is a shortest path through subsets (Held and Karp, "A dynamic programming approach to sequencing problems", 1962).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sched/policy/policies.h"

namespace trestle {

// Indices into PolicyRequest::dimensions, in the order of the phases of one half.
using HalfOrder = std::array<uint8_t, kMaxDimensions>;

// Ticks of the cost model per row: first the links of PolicyRequest::dimensions, then the shared resources.
inline constexpr size_t kMostRows = 2 * kMaxDimensions;
using Loads = std::array<uint64_t, kMostRows>;

struct ChunkOrders {
  uint64_t bytes = 0;  // as ChunkSchedule::bytes
  HalfOrder scatter{};
  HalfOrder gather{};
  bool operator==(const ChunkOrders&) const = default;
};

class OrderLoads {
 public:
  // Algorithms are chosen for chunks of `typical_bytes`; loads are those of all of request.bytes in `chunks` chunks,
  // each with its costs per chunk, and the latency of a row's last phase once.
  OrderLoads(PolicyRequest& request, uint64_t typical_bytes, uint32_t chunks);

  // A lower bound of the loads of any chunks with any algorithms: the least of every cost, costs per chunk once.
  static OrderLoads lowest(PolicyRequest& request);

  size_t dimensions() const { return dimensions_.size(); }
  uint8_t dimension(size_t index) const { return dimensions_[index]; }  // of the topology
  size_t rows() const { return rows_; }
  bool scatters() const { return scatter_.used; }
  bool gathers() const { return gather_.used; }
  // The stage of the first phase of a half.
  size_t first_stage(bool scatter) const { return scatter || !scatter_.used ? 0 : dimensions_.size(); }
  // All the latencies that a chunk meets.
  uint64_t latency_ticks() const { return latency_ticks_; }
  // The load if all the bytes went in these orders.
  Loads of(const HalfOrder& scatter, const HalfOrder& gather) const;
  // The orders of both halves with the least weighted load. Ties: the lowest dimension is reduced first.
  ChunkOrders cheapest(const Loads& weights) const;
  // Phases of a chunk, with algorithms.
  ChunkSchedule chunk(const ChunkOrders& orders) const;
  // The orders and the size of a chunk, the inverse of chunk(). A half that the request has not is the baseline's.
  ChunkOrders orders_of(const ChunkSchedule& chunk) const;
  // Innermost dimension first, and back.
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
    std::vector<Entry> entries;  // [scattered * D + dimension]; `scattered`: dimensions reduced before or kept after
  };

  void fill(Half& half, PhaseKind kind, PolicyRequest& request, uint64_t typical_bytes, Costs costs);
  void add_constants(const Half& half, CostModel& model, uint32_t chunks);
  const Entry& entry(const Half& half, uint32_t scattered, size_t d) const {
    return half.entries[scattered * dimensions_.size() + d];
  }
  HalfOrder cheapest_from_the_outside(const Half& half, const Loads& weights) const;

  std::vector<uint8_t> dimensions_;
  std::vector<size_t> resource_row_;  // of a dimension; kMostRows: none
  std::array<size_t, 256> row_of_resource_;
  size_t rows_ = 0;
  std::array<uint64_t, kMaxDimensions> delays_;  // the last phase of a link is complete so much later
  uint64_t latency_ticks_ = 0;
  Loads constants_{};
  Half scatter_;
  Half gather_;
};

}  // namespace trestle
