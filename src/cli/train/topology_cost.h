// What messages cost on a topology, by the library's own model: predicted times of an all-reduce and of its halves
// (sched/select/select.h, as trestlePredictTime), and the line that fits each of them. Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gradient/workload.h"
#include "sched/select/select.h"

namespace trestle {

struct CostPoint {
  uint64_t bytes = 0;      // of the whole buffer
  double predicted_s = 0;  // by the library's model
};

// A collective's times, and a + b bytes as fit_cost finds it (gradient/executor/link_fit.h): by least squares of the
// relative errors.
struct FittedCost {
  MessageCost cost;
  std::vector<CostPoint> points;  // ascending
  // The largest |fitted / predicted - 1|. The library changes its schedule with the size, so no line meets every point.
  double worst() const;
};

struct TopologyCost {
  int64_t workers = 1;
  FittedCost all_reduce;
  FittedCost reduce_scatter;
  FittedCost all_gather;
  GradientLink link() const;
};

// At most eight sizes from 4 KiB to 64 MiB, each rounded up to a whole number of floats per rank. One rank exchanges
// nothing, in no time. Errors: those of select_schedule.
Result<TopologyCost> fit_topology(const Topology& topology, const SelectionConfig& config);

}  // namespace trestle
