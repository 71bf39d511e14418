#include "cli/sim/sim_view.h"

#include <algorithm>
#include <cstdio>

#include "sched/model/cost.h"

namespace trestle {
namespace {

// Adds to each bin `weight` times the fraction of the bin that the span covers.
void spread(std::vector<double>& bins, double time_ns, SimSpan span, double weight) {
  const double bin_ns = time_ns / static_cast<double>(bins.size());
  if (bin_ns <= 0) return;
  const auto first = static_cast<size_t>(std::max(0.0, span.start_ns / bin_ns));
  for (size_t b = first; b < bins.size() && static_cast<double>(b) * bin_ns < span.end_ns; ++b) {
    const double begin_ns = std::max(span.start_ns, static_cast<double>(b) * bin_ns);
    const double end_ns = std::min(span.end_ns, static_cast<double>(b + 1) * bin_ns);
    bins[b] += weight * std::max(0.0, end_ns - begin_ns) / bin_ns;
  }
}

}  // namespace

std::string lane_name(const Topology& topology, uint8_t dimension) {
  const std::string ranks = std::to_string(topology.group_size(dimension)) + " ranks";
  char speed[32];
  std::snprintf(speed, sizeof speed, "%g Gb/s",
                static_cast<double>(rail_cost(topology, dimension).bandwidth_mbps) / 1000);
  if (dimension == kFlat) return "all " + ranks + ", " + speed;
  return "dimension " + std::to_string(dimension + 1) + ": " + ranks + ", " +
         to_string(topology.dimensions[dimension].kind) + ", " + speed;
}

std::vector<uint32_t> rows_of(const SimLane& lane) {
  std::vector<uint32_t> rows;
  std::vector<double> free_ns;  // per row
  for (const SimPhaseView& phase : lane.phases) {
    uint32_t row = 0;
    while (row < free_ns.size() && free_ns[row] > phase.start_ns) ++row;
    if (row == free_ns.size()) free_ns.push_back(0);
    free_ns[row] = phase.end_ns;
    rows.push_back(row);
  }
  return rows;
}

std::vector<double> activity(const SimLane& lane, double time_ns, uint32_t bins) {
  std::vector<double> shares(std::max(bins, 1u), 0);
  for (const SimSpan& span : lane.busy) spread(shares, time_ns, span, 1);
  if (lane.busy.empty()) {
    double sum_ns = 0;
    for (const SimPhaseView& phase : lane.phases) sum_ns += phase.end_ns - phase.start_ns;
    const double weight = sum_ns > 0 ? lane.busy_ns / sum_ns : 0;
    for (const SimPhaseView& phase : lane.phases) spread(shares, time_ns, {phase.start_ns, phase.end_ns}, weight);
  }
  for (double& share : shares) share = std::min(share, 1.0);
  return shares;
}

std::vector<double> total_activity(const SimView& view, uint32_t bins) {
  std::vector<double> total(std::max(bins, 1u), 0);
  double sum_gbps = 0;
  for (const SimLane& lane : view.lanes) sum_gbps += lane.gbps;
  for (const SimLane& lane : view.lanes) {
    const std::vector<double> shares = activity(lane, view.time_ns, bins);
    for (size_t b = 0; b < total.size() && sum_gbps > 0; ++b) total[b] += shares[b] * lane.gbps / sum_gbps;
  }
  return total;
}

}  // namespace trestle
