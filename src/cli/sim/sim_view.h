// SimView: one operation as `trestle sim` and `trestle plan` show it, for any model: lanes of phases over time. Value
// types and pure functions, any thread. The formats are in sim_text.h, sim_svg.h and lanes_text.h.
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
  double end_ns = 0;  // in the models of whole phases: when the link became free
};

struct SimSpan {
  double start_ns = 0;
  double end_ns = 0;
};

// A rail of a dimension, of one rank.
struct SimRailView {
  std::string interface;
  double gbps = 0;
  double busy_ns = 0;
  double bytes = 0;        // handed to it, including those sent again and probes
  double again_bytes = 0;  // of them, lost and sent over other rails
  double share = 0;        // 0 to 1, of the bytes of all rails of the dimension
  uint64_t losses = 0;
};

// One dimension: the link of one rank.
struct SimLane {
  uint8_t dimension = kFlat;
  std::string name;  // "dimension 2: 8 ranks, switch, 800 Gb/s"
  double gbps = 0;
  double busy_ns = 0;
  double bytes = 0;                  // sent by a rank
  std::vector<SimPhaseView> phases;  // in start order
  // Intervals in which the link was busy, in order. Empty if the model does not know them; then activity() spreads each
  // phase evenly over its time.
  std::vector<SimSpan> busy;
  std::vector<SimRailView> rails;  // if they were simulated one by one
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
  double ideal_time_ns = 0;   // with all links always busy
  double fluid_bound_ns = 0;  // no schedule is faster in the model of whole phases
  std::vector<SimChunkView> chunks;
  std::vector<SimLane> lanes;
  std::vector<std::string> notes;  // sentences
};

std::string lane_name(const Topology& topology, uint8_t dimension);

// Assigns each phase a row, from 0, so that phases in a row do not overlap in time. Uses as few rows as possible.
std::vector<uint32_t> rows_of(const SimLane& lane);
// For each of `bins` equal parts of the time, the fraction in which the link was busy, 0 to 1.
std::vector<double> activity(const SimLane& lane, double time_ns, uint32_t bins);
// The busy fraction of all links together, weighted by their bandwidths.
std::vector<double> total_activity(const SimView& view, uint32_t bins);

}  // namespace trestle
