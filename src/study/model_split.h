// How a topology divides between the ranks that share a model and those that share data, and the time of an all-to-all
// on it: what the study of iterations needs of a topology. Pure, any thread.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// The inner `model_ranks` ranks, and the other ranks as one of them sees them. A dimension may be cut in two. Each part
// may have no dimensions: one rank. An error if the sizes cannot be cut like this.
struct ModelSplit {
  Topology model;
  Topology data;
};
Result<ModelSplit> split_model_ranks(const Topology& topology, uint32_t model_ranks);

// Time of an all-to-all over all dimensions at once: the slowest dimension's link time plus all latencies. The workload
// that has one lists this among its assumptions.
double exchange_ns(const Topology& topology, uint64_t bytes);

}  // namespace trestle
