// The list of all algorithms: one row each, one file each. To add an algorithm, add its file, its row here and its
// CMake line.
//
// An algorithm is a pure function (kind, group size, my index, root) -> Plan. Any thread may call it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "algorithms/block_lengths.h"
#include "base/result.h"
#include "plan/plan.h"

namespace trestle {

// Cost of one phase on one rank in the alpha-beta model, in exact integers (all ranks must decide alike):
//
//   time = steps * latency + (bytes of the phase) * sent_num / sent_den / bandwidth (+ kernels' time for reduced bytes)
//
// Bytes of the phase. Reduce-scatter: the data before the phase. All-gather: the data after it. All-reduce, reduce,
// broadcast: the whole data. All-to-all: the whole input. Gather, scatter: all blocks, as the root has them.
struct AlgorithmCost {
  uint32_t steps = 0;     // consecutive messages on the critical path; those to one peer in turn count as one
  uint64_t sent_num = 0;  // fraction of the phase's bytes that the busiest rank sends or receives
  uint64_t sent_den = 1;
  // Fraction of the phase's bytes that the busiest rank reads in reductions, not counting its own.
  uint64_t reduced_num = 0;
  uint64_t reduced_den = 1;
  // Messages that the busiest rank sends and receives. Each costs half the rail's overhead per message (LogP's o at
  // both ends: Culler et al., "LogP: Towards a Realistic Model of Parallel Computation", PPoPP 1993).
  uint32_t messages = 0;
  // Some rank receives from more than one peer, and not in turns (Step::after): several senders share a port.
  bool converges = false;
};

struct Algorithm {
  std::string_view name;     // as in TRESTLE_ALGO
  std::string_view summary;  // one line for people
  // Whether it serves this phase; group sizes start at 1.
  bool (*serves)(PhaseKind kind, int32_t group_size);
  // Rows with the same function are names for the same plans where they serve the same phase; selection tries only one
  // of them.
  Plan (*build)(const PlanRequest& request);
  AlgorithmCost (*cost)(PhaseKind kind, int32_t group_size);
  // For kinds that reduce and that it serves: whether every partial sum covers consecutive ranks and is combined in
  // rank order, so that operators need not be commutative. nullptr: never.
  bool (*in_rank_order)(PhaseKind kind, int32_t group_size) = nullptr;
  // For reduce-scatter and all-gather, if it serves them: what cost() gives, but for blocks of any lengths. There are
  // at least two blocks.
  BlockLoad (*load)(PhaseKind kind, const BlockLengths& lengths) = nullptr;
  // For kinds that reduce and that it serves: the most sources of one Reduce of any rank. nullptr: kFewSources at most.
  uint32_t (*most_sources)(PhaseKind kind, int32_t group_size) = nullptr;
};

inline constexpr uint32_t kFewSources = 8;

// Algorithm::most_sources for any kind that the algorithm serves.
inline uint32_t most_sources(const Algorithm& algorithm, PhaseKind kind, int32_t group_size) {
  if (group_size == 1 || !reduces(kind)) return 1;
  return algorithm.most_sources == nullptr ? kFewSources : algorithm.most_sources(kind, group_size);
}

// Algorithm::in_rank_order for any kind that the algorithm serves.
inline bool keeps_rank_order(const Algorithm& algorithm, PhaseKind kind, int32_t group_size) {
  if (group_size == 1 || !reduces(kind)) return true;
  return algorithm.in_rank_order != nullptr && algorithm.in_rank_order(kind, group_size);
}

// ring, direct, hd (halving-doubling), rd (recursive doubling), tree (binary), dbtree (double binary), binomial, bruck,
// dissemination, chain, rabenseifner, otree (in-order tree), line, pairwise
std::span<const Algorithm> algorithms();
// By name; an unknown name is an error that lists the names.
Result<const Algorithm*> find_algorithm(std::string_view name);
// Builds the plan. With `check`, first checks the plans of the whole group symbolically.
Result<Plan> build_plan(const Algorithm& algorithm, const PlanRequest& request, bool check);

}  // namespace trestle
