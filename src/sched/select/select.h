// Selection: (collective, bytes, topology, configuration) -> Schedule, by lowest predicted time. Pure: integers only,
// ties by catalog order, so that every rank chooses the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "sched/model/uneven_load.h"
#include "sched/schedule.h"

namespace trestle {

// Cost of a dimension's rails as the model sees them, integers.
struct RailCost {
  uint64_t latency_ns = 0;           // one step: message handed over -> message there
  uint64_t bandwidth_mbps = 0;       // one way, per rank
  uint64_t message_ns = 0;           // overhead of the CPU per message, half at either end
  uint64_t reduce_mbps = 0;          // speed of the kernels that add, 10^6 bit/s of source data
  uint64_t converging_permille = 0;  // more time for bytes where several senders meet at one port
};
// The cost of dimension `dimension` (or of the flat group: the worst of its pairs' transports), nominal where the
// topology says nothing.
RailCost rail_cost(const Topology& topology, uint8_t dimension);

// One parsed TRESTLE_ALGO. Grammar in docs/environment.md: `ring` | `ring,hd` | `allreduce:ring,hd;broadcast:tree` |
// `allreduce:0-64k=rd,64k-inf=hd` | `^ring`.
class AlgorithmRules;

struct SelectionConfig {
  std::string algo;                 // TRESTLE_ALGO, "" : free choice
  std::string policy = "baseline";  // TRESTLE_SCHED
  uint32_t chunks = 0;              // TRESTLE_CHUNKS, 0: by predicted time
  uint32_t in_flight = 0;           // TRESTLE_INFLIGHT, 0: by the policy
  std::string intra = "scf";        // TRESTLE_INTRA: how links choose, where the policy leaves it open
};

struct SelectionRequest {
  Collective collective = Collective::kAllReduce;
  // Whole buffer per rank: AR, broadcast, reduce: count*size; RS, AG, all-to-all, gather, scatter: ranks*count*size;
  // their v-variants: all blocks where every rank knows them, 0 where only two ranks know a block.
  uint64_t bytes = 0;
  uint32_t element_bytes = 1;
  int32_t root = 0;
  bool decoupled =
      false;  // all-reduce whose halves are separated: RS phases then AG phases over canonical blocks, never a flat AR
  // The operator is not commutative: every sum is folded in rank order. Only algorithms that do, and the baseline's
  // order of dimensions: innermost first, so that what has been summed is always a run of neighbouring ranks.
  bool rank_order = false;
  // All-gather-v, reduce-scatter-v: the bytes of every rank's block, together `bytes`; none: as if they were equal.
  BlockBytes blocks = {};
};

// Checks the grammar and the names; errors list what can serve.
Status validate(const SelectionConfig& config, const Topology& topology);
Result<Schedule> select_schedule(const SelectionRequest& request, const Topology& topology,
                                 const SelectionConfig& config);

// What select_schedule chooses from, for people and tests (none for one rank): in the order in which it was tried.
struct SelectionCandidate {
  Schedule schedule;
  uint64_t time_ps = 0;  // predicted, as predict_ns does; from kSecondLevelBytes on only the best of whole phases are
  bool ordered = false;  // by the policy (config.policy); false: what every policy has
  bool chosen = false;   // exactly one, of those with the lowest time
};
Result<std::vector<SelectionCandidate>> selection_candidates(const SelectionRequest& request, const Topology& topology,
                                                             const SelectionConfig& config);
// Predicted time of a schedule on this topology, nanoseconds: of the level that selection compares
// (sched/model/second_level.h). blocks: SelectionRequest::blocks.
uint64_t predict_ns(const Schedule& schedule, const Topology& topology, const BlockBytes& blocks = {});

}  // namespace trestle
