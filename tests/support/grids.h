// Topologies for tests. Pure functions.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace trestle {

// A dimension; what is not said of it is as in a topology file that does not say it.
struct GridDimension {
  int32_t size = 1;
  uint64_t bandwidth_mbps = 0;
  uint64_t latency_ns = kNominalLatency;
  TransportKind transport = TransportKind::kAuto;
  DimensionKind kind = DimensionKind::kSwitch;
};

inline Topology grid_of(const std::vector<GridDimension>& dimensions) {
  Topology topology;
  for (const GridDimension& each : dimensions) {
    Dimension& dimension = topology.dimensions.emplace_back();
    dimension.size = each.size;
    dimension.kind = each.kind;
    dimension.bandwidth_mbps = each.bandwidth_mbps;
    dimension.latency_ns = each.latency_ns;
    dimension.transport = each.transport;
  }
  return topology;
}

// Dimensions of these sizes that are alike otherwise.
inline Topology even_grid(const std::vector<int32_t>& sizes, GridDimension like = {}) {
  std::vector<GridDimension> dimensions;
  for (const int32_t size : sizes) {
    like.size = size;
    dimensions.push_back(like);
  }
  return grid_of(dimensions);
}

}  // namespace trestle
