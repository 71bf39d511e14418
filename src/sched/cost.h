// The cost model: what one phase of a chunk costs on this topology, in exact integers (picoseconds).
//
// Alpha-beta model with a term for the CPU (Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005, section 3; the fractions per algorithm come from the catalog):
//   link time = sent bytes / bandwidth + messages * overhead + reduced bytes / speed of reduction
//   delay     = steps * latency
// A CostModel belongs to one call of a policy or a prediction and is used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "sched/schedule.h"
#include "sched/select.h"
#include "sched/simulate.h"

namespace trestle {

// What a chunk has to do with a phase: the phase's bytes (see AlgorithmCost) are `bytes / divisor`.
struct PhaseBytes {
  uint64_t bytes = 0;
  uint64_t divisor = 1;
};

class CostModel {
 public:
  explicit CostModel(const Topology& topology);

  const Topology& topology() const { return topology_; }
  // `link` of the result is not set.
  SimulatedPhase phase(const PhaseChoice& choice, PhaseBytes bytes);
  // The same without what waits for others: a phase alone.
  uint64_t alone_ps(const PhaseChoice& choice, PhaseBytes bytes);
  // Appends the phases of a chunk; links[dimension] is the index of the link of a dimension.
  void append(const ChunkSchedule& chunk, const std::array<uint8_t, 256>& links, Simulation& simulation);

 private:
  struct Dim {
    RailCost rail;
    uint64_t shared_ps_per_byte = 0;
    uint8_t resource = kNoResource;
    std::vector<std::optional<AlgorithmCost>> algorithms;  // [algorithm * kPhaseKinds + kind], filled when asked for
  };
  Dim& dim(uint8_t dimension);
  const AlgorithmCost& algorithm_cost(Dim& dim, const PhaseChoice& choice);

  const Topology& topology_;
  std::vector<Dim> dims_;  // the last one is kFlat
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
};

// Ranks that take part in a phase.
int32_t group_size(const Topology& topology, const PhaseChoice& choice);

}  // namespace trestle
