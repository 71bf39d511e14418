// The paper's model as one call: a system, an operation and a policy give times, utilisation and the whole schedule
// (Themis, arXiv 2110.04478; formulas in sched/model/cost.h, rules in sched/model/simulate.h). `trestle sim` and tests
// use it. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "sched/model/steps_model.h"
#include "sched/policy/policies.h"

namespace trestle {

inline constexpr uint32_t kMostChunks = 65536;

struct PaperCase {
  Topology topology;                               // every dimension has a bandwidth; a latency that is not given is 0
  Collective collective = Collective::kAllReduce;  // or kReduceScatter, kAllGather
  uint64_t bytes = 0;                              // resident per rank before the operation
  uint32_t chunks = 64;                            // of equal size, not necessarily whole bytes
  std::string policy = "themis";                   // as TRESTLE_SCHED
  std::string intra = "scf";                       // as TRESTLE_INTRA; the baseline always uses first in, first out
  uint32_t in_flight = UINT32_MAX;                 // phases per dimension; 0: the policy's choice
  // Beyond the paper: if set, a policy that chooses among schedules takes the one that is fastest in the model of
  // steps. The result's times are still those of whole phases.
  std::optional<StepsOptions> second_level;
};

// A time in ticks of 1 / ticks_per_ns nanoseconds.
struct ExactTime {
  uint64_t ticks = 0;
  uint64_t ticks_per_ns = 1;
  double ns() const { return static_cast<double>(ticks) / static_cast<double>(ticks_per_ns); }
  // Nanoseconds as a reduced fraction: "4208304/5", "1610612736".
  std::string text() const;
};

struct PaperPhase {
  PhaseId id;
  uint64_t start_ticks = 0;
  uint64_t left_ticks = 0;      // when the link became free
  uint64_t complete_ticks = 0;  // one latency later
};

struct PaperChunk {
  double bytes = 0;  // resident per rank before the operation
  // Indices of dimensions in the chunk's order; empty if the operation has no such half.
  std::vector<uint8_t> reduce_scatter;
  std::vector<uint8_t> all_gather;
};

struct PaperLink {
  uint8_t dimension = 0;
  ExactTime busy;                   // time in which it carries bytes
  double bytes = 0;                 // sent per rank
  double utilization = 0;           // busy / time
  std::vector<PaperPhase> started;  // in start order
};

struct PaperResult {
  ExactTime time;
  // All times are exact. False: they are rounded up to a tick, because the bandwidths have no common unit.
  bool exact = false;
  double utilization = 0;  // bytes sent per rank / (time * sum of the bandwidths), 0 to 1
  // The time with all links always busy: 8 * bytes sent / sum of the bandwidths. The bytes do not depend on the order
  // unless switches reduce; then they are those of this schedule.
  double ideal_time_ns = 0;
  // Lower bound of all schedules, from their bytes alone (sched/policy/fluid_bound.h without latencies).
  double fluid_bound_ns = 0;
  std::vector<PaperChunk> chunks;
  std::vector<PaperLink> links;      // one per dimension, innermost first
  std::vector<ExactTime> latencies;  // A_K of the operation, per dimension
  // The loads of Themis' tracker after the last chunk, per dimension: latencies plus the link times of the
  // reduce-scatter half (for an all-gather alone: of the all-gather).
  std::vector<ExactTime> tracker_loads;
  // Policy themis, per chunk: the loads were balanced, so the chunk took the baseline's order.
  std::vector<bool> fallback;
  PlannedSchedule planned;  // sizes in parts, times in ticks of `scale`
  ModelScale scale;
  // As modelled: without dimensions of size 1 and without properties that do not hold for this collective.
  Topology topology;
};

// Errors (kInvalidArgument): a collective that is none of the three, no bytes, no chunks, a dimension without
// bandwidth, more than kMaxDimensions, an unknown policy or rule, numbers beyond the model's range.
Result<PaperResult> run_paper(const PaperCase& paper_case);
// The result's schedule in whole bytes, for the other models. Chunks are cut so that all ranks get equal shares.
Schedule schedule_in_bytes(const PaperResult& result);

}  // namespace trestle
