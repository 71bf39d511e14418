// The cost model: what one phase of a chunk costs on this topology, in exact integers.
//
// The library's model, in picoseconds, is an alpha-beta model with a term for the CPU (Thakur, Rabenseifner, Gropp,
// "Optimization of Collective Communication Operations in MPICH", 2005, section 3). The fractions per algorithm come
// from the catalog:
//   link time = sent bytes / bandwidth + messages * overhead / 2 + reduced bytes / speed of reduction
//   delay     = steps * latency
// Where several senders meet at one port, some of what they send is lost, sent again and read again. So the sent bytes
// cost more there (RailCost::converging_permille), on the link and on a resource that the dimension shares.
// Copies within a rank cost nothing, with one exception. In an all-to-all over the dimensions the n-th part of each
// phase's data stays on the rank. It is copied to the place where the next phase reads it, at the speed of reductions.
//
// The paper's model (Themis, arXiv 2110.04478, sections 4.3 and 4.4, and its conventions for latencies) counts ticks of
// a ModelScale. It has no overhead and no reduction, and the kind of the dimension gives the algorithm. The data of a
// phase of P ranks is s before a reduce-scatter and after an all-gather:
//   link time = s * (P - 1) / P / bandwidth
//   delay     = steps * latency; ring: P - 1, fully connected: 1 (direct), switch: ceil(log2 P) (halving-doubling)
//
// A switch that reduces (section 4.5; Graham et al., "Scalable Hierarchical Aggregation Protocol", COMHPC 2016) needs
// one step for a reduce-scatter and one for an all-gather. In a reduce-scatter a rank sends the switch the part of its
// data that other ranks need, s * (P - 1) / P, and receives its own block reduced. In an all-gather it sends its s / P
// once, and the switch multicasts it. So an all-reduce sends s, not 2 * s * (P - 1) / P. This is the minimum for such a
// switch, because the owner of a block adds its own part itself. Present switches move one part more. NVLink SHARP
// sends s and receives s / P in a reduce-scatter, and the reverse in an all-gather, so an all-reduce takes s * (P + 1)
// / P each way. Neither half gains alone (a maintainer of NCCL in github.com/NVIDIA/nccl/issues/1083 and 1506). The
// paper's section says only "less data and fewer steps"; its figures are not known.
//
// The model counts sent bytes. Received bytes are the mirror image in the other direction, so this holds if both halves
// overlap. An all-gather alone is limited by the received bytes; for it the property must be off.
//
// A CostModel belongs to one call of a policy or a prediction and is used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "base/wide.h"
#include "sched/model/model_scale.h"
#include "sched/model/simulate.h"
#include "sched/model/uneven_load.h"
#include "sched/schedule.h"

namespace trestle {

// The cost of a dimension's rails in the model, integers.
struct RailCost {
  uint64_t latency_ns = 0;           // one step: from handing over a message to its arrival
  uint64_t bandwidth_mbps = 0;       // one way, per rank
  uint64_t message_ns = 0;           // CPU overhead per message, half at either end
  uint64_t reduce_mbps = 0;          // speed of the reduction kernels, 10^6 bit/s of source data
  uint64_t converging_permille = 0;  // additional time for bytes if several senders share one port
};
// The cost of dimension `dimension`, or of the flat group (the worst of its pairs' transports). Nominal if the topology
// gives no numbers.
RailCost rail_cost(const Topology& topology, uint8_t dimension);

// The data of a chunk in a phase: the phase's bytes (see AlgorithmCost) are `bytes / divisor`.
struct PhaseBytes {
  uint64_t bytes = 0;
  uint64_t divisor = 1;
  // The dimensions (bit mask), besides the phase's own, in which the data is split. They matter if blocks have unequal
  // lengths.
  uint32_t fixed = 0;
};

class CostModel {
 public:
  // The library's model. blocks: the unequal block lengths that all ranks know (sched/model/uneven_load.h).
  explicit CostModel(const Topology& topology, const BlockBytes& blocks = {});
  // The paper's model. Sizes are then parts. Chunks that are multiples of topology.ranks() parts have exact costs.
  CostModel(const Topology& topology, const ModelScale& scale);

  const Topology& topology() const { return topology_; }
  const ModelScale& scale() const { return scale_; }
  bool is_paper() const { return paper_; }
  // The only algorithm that this model allows a phase; nothing: any.
  std::optional<uint16_t> fixed_algorithm(const PhaseChoice& choice) const;
  // `link` of the result is not set.
  SimulatedPhase phase(const PhaseChoice& choice, PhaseBytes bytes);
  // The time of the phase alone, without waiting for others.
  uint64_t alone_ticks(const PhaseChoice& choice, PhaseBytes bytes);
  // Appends the phases of a chunk. links[dimension] is the index of the dimension's link. Sizes are in parts; in the
  // library's model these are 1/N of a byte, so that the sizes of equal chunks are exact.
  void append(const ChunkSchedule& chunk, const std::array<uint8_t, 256>& links, Simulation& simulation);
  // A whole schedule: the links are its orders, one by one, and all its phases are to run on them.
  Simulation simulation_of(const Schedule& schedule);

 private:
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
    // [algorithm * kPhaseKinds + kind], computed at first use
    std::vector<std::optional<AlgorithmCost>> algorithms;
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

// Walks along the phases of a chunk of `bytes` (as in Schedule::bytes) and returns the bytes of each.
class PhaseWalk {
 public:
  PhaseWalk(const Topology& topology, uint64_t bytes, const std::vector<PhaseChoice>& phases);
  PhaseBytes next(const PhaseChoice& choice);

 private:
  const Topology& topology_;
  uint64_t bytes_;
  uint64_t divisor_ = 1;
  uint32_t split_ = 0;  // bit mask of dimensions
};

// The number of ranks that take part in a phase.
int32_t group_size(const Topology& topology, const PhaseChoice& choice);
// The time of sent bytes, on a link or on a shared resource, with what is lost and sent again.
constexpr uint64_t with_losses(uint64_t ticks, uint64_t permille) {
  return ticks + ticks / 1000 * permille;
}
// Whether a phase copies its own block to the place where the next phase reads it.
bool regroups(const PhaseChoice& choice);

}  // namespace trestle
