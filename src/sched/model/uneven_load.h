// UnevenLoad: adapts the costs of the catalog's algorithms, which hold for equal blocks, to blocks of unequal lengths
// that all ranks know (all-gather-v, reduce-scatter-v).
//
// A phase on a dimension is one exchange in each group. Its blocks are sums of the ranks' blocks. A phase takes as long
// as the busiest rank of all groups. Chunks are slices of every block, so all chunks have the same fractions. Integers
// only; exact except for rounding to 24 bits. Belongs to one model and its thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "algorithms/catalog.h"
#include "sched/schedule.h"

namespace trestle {

// The bytes of every rank's block; empty if all are equal.
using BlockBytes = std::vector<uint64_t>;

class UnevenLoad {
 public:
  // `topology` must outlive this object.
  UnevenLoad(const Topology& topology, const BlockBytes& bytes);

  // Whether unequal blocks change the cost of this phase.
  bool concerns(const PhaseChoice& choice) const;
  // fixed: the dimensions (bit mask), besides the phase's own, in which its data is split. As in AlgorithmCost, the
  // fractions refer to the bytes that the phase would have with equal blocks.
  const AlgorithmCost& cost(const PhaseChoice& choice, uint32_t fixed);

 private:
  BlockLoad busiest(const PhaseChoice& choice, uint32_t fixed) const;
  // The blocks of each group, by coordinate in the phase's dimension. Every group appears once.
  std::vector<std::vector<uint64_t>> blocks_of_groups(uint8_t dimension, uint32_t fixed) const;

  const Topology& topology_;
  const BlockBytes bytes_;  // empty: all are equal
  uint64_t total_ = 0;
  std::map<std::tuple<uint8_t, PhaseKind, uint16_t, uint32_t>, AlgorithmCost> costs_;
};

}  // namespace trestle
