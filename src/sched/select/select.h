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

struct SelectionConfig {
  std::string algo;                 // TRESTLE_ALGO, "" : free choice
  std::string policy = "baseline";  // TRESTLE_SCHED
  uint32_t chunks = 0;              // TRESTLE_CHUNKS, 0: by predicted time
  uint32_t in_flight = 0;           // TRESTLE_INFLIGHT, 0: by the policy
  std::string intra = "scf";        // TRESTLE_INTRA: the rule of the links, if the policy leaves it open
};

struct SelectionRequest {
  Collective collective = Collective::kAllReduce;
  // The whole buffer per rank. AR, broadcast, reduce: count*size. RS, AG, all-to-all, gather, scatter:
  // ranks*count*size. v-variants: all blocks if every rank knows them, 0 if only two ranks know a block.
  uint64_t bytes = 0;
  uint32_t element_bytes = 1;
  int32_t root = 0;
  // An all-reduce whose halves are separated: RS phases, then AG phases, over canonical blocks, never a flat AR.
  bool decoupled = false;
  // The operator is not commutative: every sum is folded in rank order. Selects only algorithms that do so and the
  // baseline's order of dimensions, innermost first, so that every partial sum is one of neighbouring ranks.
  bool rank_order = false;
  // The place of the data allows no more sources of one Reduce, as a GPU's kernels. Selects only algorithms that need
  // no more. 0: any number.
  uint32_t most_sources = 0;
  // All-gather-v, reduce-scatter-v: the bytes of every rank's block; their sum is `bytes`. Empty: equal blocks.
  BlockBytes blocks = {};
};

// Checks the grammar and the names. Errors list the algorithms that can serve.
Status validate(const SelectionConfig& config, const Topology& topology);
Result<Schedule> select_schedule(const SelectionRequest& request, const Topology& topology,
                                 const SelectionConfig& config);

// A candidate of select_schedule, for people and tests. Listed in the order in which they were compared; none for one
// rank.
struct SelectionCandidate {
  Schedule schedule;
  // Predicted as by predict_ns. From kSecondLevelBytes on only the best candidates by whole phases are listed.
  uint64_t time_ps = 0;
  // By the policy (config.policy). False: a candidate of all policies.
  bool ordered = false;
  bool chosen = false;  // exactly one candidate; it has the lowest time
};
Result<std::vector<SelectionCandidate>> selection_candidates(const SelectionRequest& request, const Topology& topology,
                                                             const SelectionConfig& config);
}  // namespace trestle
