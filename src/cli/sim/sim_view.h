// SimView: what `trestle sim` and `trestle plan` show of one operation, whichever model it came from: lanes of phases
// over time. Value types and pure functions, any thread; the formats are in sim_text.h, sim_svg.h and lanes_text.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/schedule.h"
#include "topology/topology.h"

namespace trestle {

struct SimPhaseView {
  PhaseId id;
  PhaseKind kind = PhaseKind::kReduceScatter;
  double start_ns = 0;
  double end_ns = 0;  // where phases are whole pieces: when the link was free again
};

struct SimSpan {
  double start_ns = 0;
  double end_ns = 0;
};

// One dimension: a rank's link.
struct SimLane {
  uint8_t dimension = kFlat;
  std::string name;  // "dimension 2: 8 ranks, switch, 800 Gb/s"
  double gbps = 0;
  double busy_ns = 0;
  double bytes = 0;                  // sent by a rank
  std::vector<SimPhaseView> phases;  // in start order
  // In which the link was busy, in order. Empty where the model does not tell: then activity() spreads each phase
  // evenly over its time.
  std::vector<SimSpan> busy;
};

struct SimChunkView {
  double bytes = 0;                     // resident per rank before the operation
  std::vector<uint8_t> reduce_scatter;  // dimensions in order, from 0
  std::vector<uint8_t> all_gather;
};

struct SimView {
  std::string collective;
  std::string sizes;  // "16x8x8"
  int64_t ranks = 1;
  uint64_t bytes = 0;  // resident per rank before the operation
  std::string sched;
  std::string intra;
  std::string model;
  double time_ns = 0;
  double utilization = 0;     // 0 to 1
  double ideal_time_ns = 0;   // every link busy all the time
  double fluid_bound_ns = 0;  // no schedule is faster in the model of whole phases
  std::vector<SimChunkView> chunks;
  std::vector<SimLane> lanes;
  std::vector<std::string> notes;  // sentences
};

std::string lane_name(const Topology& topology, uint8_t dimension);

// Rows such that no two phases of a row overlap in time: of each phase, from 0, as few as possible.
std::vector<uint32_t> rows_of(const SimLane& lane);
// The share of each of `bins` equal parts of the time in which the link was busy, 0 to 1.
std::vector<double> activity(const SimLane& lane, double time_ns, uint32_t bins);
// The same of all links, weighted by their bandwidths.
std::vector<double> total_activity(const SimView& view, uint32_t bins);

}  // namespace trestle
