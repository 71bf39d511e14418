// The paper's model as one call: a system, an operation and a policy give times, utilisation and the whole schedule
// (Themis, arXiv 2110.04478; formulas in sched/model/cost.h, rules in sched/model/simulate.h). Used by `trestle sim`
// and by tests. Pure, any thread.
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

struct PaperCase {
  Topology topology;  // every dimension with its bandwidth; a latency that is not said is 0
  Collective collective = Collective::kAllReduce;  // or kReduceScatter, kAllGather
  uint64_t bytes = 0;                              // resident per rank before the operation
  uint32_t chunks = 64;                            // equal ones, not necessarily of whole bytes
  std::string policy = "themis";                   // as TRESTLE_SCHED
  std::string intra = "scf";                       // as TRESTLE_INTRA; the baseline is first in, first out always
  uint32_t in_flight = UINT32_MAX;                 // phases per dimension; 0: the policy's choice
  // Beyond the paper: a policy that chooses among schedules takes the one that is fastest in the model of steps. The
  // result's times are those of whole phases all the same.
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
  uint64_t left_ticks = 0;      // the link was free again
  uint64_t complete_ticks = 0;  // a latency later
};

struct PaperChunk {
  double bytes = 0;  // resident per rank before the operation
  // Indices of dimensions in the order in which the chunk goes over them; empty where there is no such half.
  std::vector<uint8_t> reduce_scatter;
  std::vector<uint8_t> all_gather;
};

struct PaperLink {
  uint8_t dimension = 0;
  ExactTime busy;                   // carrying bytes
  double bytes = 0;                 // sent per rank
  double utilization = 0;           // busy / time
  std::vector<PaperPhase> started;  // in start order
};

struct PaperResult {
  ExactTime time;
  bool exact = false;      // all times are; false: rounded up to a tick, because the bandwidths have no common unit
  double utilization = 0;  // bytes sent per rank / (time * sum of the bandwidths), 0 to 1
  // Every link busy all the time: 8 * bytes sent / sum of the bandwidths. The bytes do not depend on the order, unless
  // switches reduce: then they are those of this schedule.
  double ideal_time_ns = 0;
  double fluid_bound_ns =
      0;  // no schedule is faster, because of its bytes (sched/model/fluid_bound.h without latencies)
  std::vector<PaperChunk> chunks;
  std::vector<PaperLink> links;      // one per dimension, innermost first
  std::vector<ExactTime> latencies;  // A_K of the operation, per dimension
  // What the load tracker of Themis says after the last chunk, per dimension: latencies, and the link times of the
  // reduce-scatter half (of an all-gather alone: of that).
  std::vector<ExactTime> tracker_loads;
  std::vector<bool> fallback;  // of policy themis: which chunks found the loads level and took the baseline's order
  PlannedSchedule planned;     // sizes in parts, times in ticks of `scale`
  ModelScale scale;
  Topology topology;  // as modelled: dimensions of size 1 dropped, nothing that does not hold for this collective
};

// Errors (kInvalidArgument): a collective that is neither of the three, no bytes, no chunks, a dimension without
// bandwidth, more than kMaxDimensions, an unknown policy or rule, numbers beyond the model's.
Result<PaperResult> run_paper(const PaperCase& paper_case);
// The schedule of a result in whole bytes, its chunks cut where all ranks can share them: for the other models.
Schedule schedule_in_bytes(const PaperResult& result);

// Activity over time (the paper's figure 10): the share of each of `bins` equal parts of the time in which the link was
// busy, 0 to 1.
std::vector<double> activity(const PaperResult& result, const PaperLink& link, uint32_t bins);

}  // namespace trestle
