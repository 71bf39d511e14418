// Simulates one schedule in any of three models. All of them give a SimReport.
//
//   paper   a phase is one piece (Themis, arXiv 2110.04478; sched/model/simulate.h)
//   steps   messages and segments of one representative rank (sched/model/steps_model.h)
//   engine  every rank, the real engine over simulated links (sim/cluster.h)
//
// Pure functions, except that they allocate memory; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "sched/model/model_scale.h"
#include "sched/model/steps_model.h"
#include "sim/faults.h"
#include "sim/rail_request.h"
#include "sim/work_queue.h"

namespace trestle {

enum class SimModel : uint8_t { kPaper, kSteps, kEngine };
// "paper", "steps", "engine"; an unknown name is an error that lists them.
Result<SimModel> parse_sim_model(const std::string& name);
const char* to_string(SimModel model);

struct SimulateOptions {
  Collective collective = Collective::kAllReduce;  // or kReduceScatter, kAllGather
  SegmentRule segments = {};                       // steps, engine
  uint32_t window = 32;    // steps, engine: segments of a step in flight; 0: any number (steps only)
  uint32_t in_flight = 0;  // not 0: phases in flight per dimension, instead of the schedule's
  bool overheads = false;  // per message and for reductions (RailCost), not only links
  bool intervals = false;  // steps: fill SimReportLink::intervals
  SimFaults faults = {};   // engine
  SimWork work = {};       // engine; instead of the time for reductions that `overheads` counts on links
  std::vector<SimRailRequest> rails = {};  // engine
  uint64_t whole_bytes = 16 * 1024;        // engine: messages up to this take one rail
  int64_t timeout_ns = 0;  // engine, virtual time: when an operation that cannot finish fails; 0: at once
};

// A rail of a dimension, of a rank on average.
struct SimReportRail {
  std::string interface;
  uint64_t bandwidth_mbps = 0;
  uint64_t bytes = 0;        // handed to it, including those sent again and probes
  uint64_t again_bytes = 0;  // of them, lost and sent over other rails
  uint64_t busy_ps = 0;
  double share = 0;     // of the bytes of all rails of the dimension
  uint64_t losses = 0;  // how often it was lost
};

struct SimReportLink {
  uint8_t dimension = 0;
  uint64_t busy_ps = 0;                    // of a rank (engine: mean)
  uint64_t bytes = 0;                      // sent by a rank (engine: mean)
  double utilization = 0;                  // busy / time
  std::vector<StepsTimes> intervals = {};  // steps, if SimulateOptions::intervals: busy times, in order
  std::vector<SimReportRail> rails = {};   // engine; busy_ps above is their mean, weighted by bandwidth
};

struct SimReport {
  uint64_t time_ps = 0;
  double utilization = 0;                       // bytes sent per rank / (time * sum of the bandwidths)
  double ideal_time_ns = 0;                     // the time if all links were always busy
  std::vector<SimReportLink> links;             // as Schedule::orders
  std::vector<std::vector<StepsTimes>> phases;  // [chunk][stage]; engine: as rank 0 saw them
  uint64_t messages = 0;                        // engine: segments of all ranks
};

// The schedule's sizes are in bytes. Its orders must hold each phase once. Errors: the orders wait for each other, or a
// fault stops an operation (the message says what ranks wait for, or which rails are gone); the engine has fewer bytes
// than ranks, or a rail is unknown (kInvalidArgument).
Result<SimReport> simulate_schedule(SimModel model, const Schedule& schedule, const Topology& topology,
                                    const SimulateOptions& options);

// `options` as those of the model of steps alone: for planners that choose schedules with it.
StepsOptions steps_options(const SimulateOptions& options);

}  // namespace trestle
