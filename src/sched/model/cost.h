// The cost model: what one phase of a chunk costs on this topology, in exact integers.
//
// The library's model, in picoseconds:
// Alpha-beta model with a term for the CPU (Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005, section 3; the fractions per algorithm come from the catalog):
//   link time = sent bytes / bandwidth + messages * overhead / 2 + reduced bytes / speed of reduction
//   delay     = steps * latency
// Copies within a rank cost nothing, but for an all-to-all over the dimensions: of each phase's data the n-th part
// stays, and is copied to where the next phase takes it, at the speed of reductions.
// The paper's model (Themis, arXiv 2110.04478, sections 4.3 and 4.4, and its conventions for latencies), in the ticks
// of a ModelScale: no overhead, no reduction, the algorithm by the kind of the dimension; the data of a phase of P
// ranks is s before a reduce-scatter and after an all-gather:
//   link time = s * (P - 1) / P / bandwidth
//   delay     = steps * latency; ring: P - 1, fully connected: 1 (direct), switch: ceil(log2 P) (halving-doubling)
// A switch that reduces (section 4.5; Graham et al., "Scalable Hierarchical Aggregation Protocol", COMHPC 2016): a rank
// sends the switch what others need of its data, s * (P - 1) / P, which comes back reduced; in the all-gather it sends
// its s / P once and the switch multicasts it; one step each. An all-reduce thus sends s, not 2 * s * (P - 1) / P.
// That is the least that such a switch asks for: the owner of a block adds its own part itself. What switches of today
// do is one part more: NVLink SHARP sends s and receives s / P in a reduce-scatter, the reverse in an all-gather, where
// neither alone gains, only both together (a maintainer of NCCL in github.com/NVIDIA/nccl/issues/1083 and 1506), so
// that an all-reduce takes s * (P + 1) / P each way. Of the paper's section only "less data and fewer steps" is known
// here, not its figures.
// Counted is what is sent; what is received is the mirror image and travels the other way, so this holds where both
// halves overlap. An all-gather alone is bound by what is received: for that the property must be off. A CostModel
// belongs to one call of a policy or a prediction and is used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "sched/model/model_scale.h"
#include "sched/model/simulate.h"
#include "sched/model/uneven_load.h"
#include "sched/schedule.h"
#include "sched/select/select.h"

namespace trestle {

// What a chunk has to do with a phase: the phase's bytes (see AlgorithmCost) are `bytes / divisor`.
struct PhaseBytes {
  uint64_t bytes = 0;
  uint64_t divisor = 1;
  // Dimensions (bit mask) besides the phase's own in which the data is split: where blocks are of unequal lengths, it
  // matters which.
  uint32_t fixed = 0;
};

class CostModel {
 public:
  // The library's model. blocks: of what all ranks know to be unequal (sched/model/uneven_load.h).
  explicit CostModel(const Topology& topology, const BlockBytes& blocks = {});
  // The paper's. Sizes are parts then; chunks that are multiples of topology.ranks() parts have exact costs.
  CostModel(const Topology& topology, const ModelScale& scale);

  const Topology& topology() const { return topology_; }
  const ModelScale& scale() const { return scale_; }
  bool is_paper() const { return paper_; }
  // The one algorithm that a phase has in this model; nothing: free.
  std::optional<uint16_t> fixed_algorithm(const PhaseChoice& choice) const;
  // `link` of the result is not set.
  SimulatedPhase phase(const PhaseChoice& choice, PhaseBytes bytes);
  // The same without what waits for others: a phase alone.
  uint64_t alone_ticks(const PhaseChoice& choice, PhaseBytes bytes);
  // Appends the phases of a chunk; links[dimension] is the index of the link of a dimension. Sizes are in parts, in the
  // library's model in 1/N of a byte, so that those of equal chunks are exact.
  void append(const ChunkSchedule& chunk, const std::array<uint8_t, 256>& links, Simulation& simulation);

 private:
  using Wide = unsigned __int128;
  // Ticks per byte (or part), as a fraction.
  struct Rate {
    Wide ticks = 0;
    Wide bytes = 1;
  };
  struct Dim {
    RailCost rail;
    Rate link;
    Rate reduction;
    Rate shared;
    uint64_t shared_ps_per_byte = 0;
    uint8_t resource = kNoResource;
    std::vector<std::optional<AlgorithmCost>> algorithms;  // [algorithm * kPhaseKinds + kind], filled when asked for
  };
  Dim& dim(uint8_t dimension);
  const AlgorithmCost& algorithm_cost(Dim& dim, const PhaseChoice& choice, uint32_t fixed);
  AlgorithmCost paper_cost(const PhaseChoice& choice) const;
  uint64_t ticks(PhaseBytes bytes, uint64_t numerator, uint64_t denominator, const Rate& rate) const;
  uint64_t size(PhaseBytes bytes) const;
  void set_rates();

  const Topology& topology_;
  const ModelScale scale_;
  const bool paper_;
  std::vector<Dim> dims_;  // the last one is kFlat
  UnevenLoad uneven_;
};

// Goes along the phases of a chunk of `bytes` (as Schedule::bytes counts) and tells the bytes of each.
class PhaseWalk {
 public:
  PhaseWalk(const Topology& topology, uint64_t bytes, const std::vector<PhaseChoice>& phases);
  PhaseBytes next(const PhaseChoice& choice);

 private:
  const Topology& topology_;
  uint64_t bytes_;
  uint64_t divisor_ = 1;
  uint32_t split_ = 0;  // dimensions
};

// Ranks that take part in a phase.
int32_t group_size(const Topology& topology, const PhaseChoice& choice);
// Whether a phase copies its own block to where the next phase takes it.
bool regroups(const PhaseChoice& choice);

}  // namespace trestle
