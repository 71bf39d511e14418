// The six systems on which Themis was evaluated: arXiv 2110.04478, table 2, 1024 ranks each. Constants, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.h"

namespace trestle {

struct PaperDimension {
  int32_t size = 0;
  DimensionKind kind = DimensionKind::kSwitch;
  uint32_t bandwidth_gbps = 0;  // per rank, one way
  uint32_t latency_ns = 0;      // of a step
};

struct PaperSystem {
  std::string_view name;
  std::array<PaperDimension, 4> dimensions;  // innermost first; size 0: no more dimensions
};

std::span<const PaperSystem> paper_systems();
Topology to_topology(const PaperSystem& system);

struct NamedTopology {
  std::string name;
  Topology topology;  // every dimension has a bandwidth
};
std::vector<NamedTopology> named_paper_systems();

// The paper's results for an all-reduce of 100 MB to 1 GB in 64 chunks: means over systems and sizes (section 6.1).
struct PaperReport {
  double baseline_utilization = 0.5631;
  double themis_fifo_utilization = 0.8767;
  double themis_scf_utilization = 0.9514;
  double themis_fifo_speedup = 1.58;
  double themis_scf_speedup = 1.72;
  double most_speedup = 2.70;
  // Means over 3D-SW_SW_SW_hetero and 4D-Ring_FC_Ring_SW, with 4 and with 512 chunks.
  double themis_fifo_sweep[2] = {0.4313, 0.8781};
  double themis_scf_sweep[2] = {0.4858, 0.9118};
};
inline constexpr PaperReport kPaperReport{};

}  // namespace trestle
