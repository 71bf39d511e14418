// UnevenLoad: what blocks of unequal lengths that all ranks know (all-gather-v, reduce-scatter-v) change in the costs
// of the catalog's algorithms, which are those of equal blocks.
//
// A phase on a dimension is one exchange in each of its groups, with blocks that are sums of the ranks' blocks; a phase
// takes as long as the busiest rank of all groups does. Chunks are slices of every block, so that all of them have the
// same fractions. Exact but for the last of 24 bits, integers only. Belongs to one model and its thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "algorithms/catalog.h"
#include "sched/schedule.h"

namespace trestle {

// Bytes of every rank's block; none where all are alike.
using BlockBytes = std::vector<uint64_t>;

class UnevenLoad {
 public:
  // `topology` outlives this.
  UnevenLoad(const Topology& topology, const BlockBytes& bytes);

  // Whether there is anything to change in such a phase.
  bool concerns(const PhaseChoice& choice) const;
  // fixed: the dimensions (bit mask) besides the phase's own in which its data is split. The fractions are of the bytes
  // that the phase would have if all blocks were alike, as AlgorithmCost's are.
  const AlgorithmCost& cost(const PhaseChoice& choice, uint32_t fixed);

 private:
  BlockLoad busiest(const PhaseChoice& choice, uint32_t fixed) const;
  // Of all ranks of one group, by coordinate in the phase's dimension; every group once.
  std::vector<std::vector<uint64_t>> blocks_of_groups(uint8_t dimension, uint32_t fixed) const;

  const Topology& topology_;
  const BlockBytes bytes_;  // empty where they are alike
  uint64_t total_ = 0;
  std::map<std::tuple<uint8_t, PhaseKind, uint16_t, uint32_t>, AlgorithmCost> costs_;
};

}  // namespace trestle
