// The dimensions that the command line and the variables give, and `trestle plan`, which prints the library's
// decisions. Pure, except that they read a topology file.
#pragma once

#include <cstdint>
#include <string>

#include "base/config/config.h"
#include "base/result.h"
#include "sched/select/select.h"
#include "topology/topology.h"

namespace trestle {

struct TopologyOptions {
  std::string dims;   // "" : as TRESTLE_DIMS
  std::string file;   // "" : as TRESTLE_TOPO_FILE
  int64_t ranks = 0;  // 0: as many as the dimensions have. Without dimensions: in one dimension
};

// The request that the variables make.
TopologyRequest topology_request(const Config& config);

// The settings for the choice of schedules that the variables make.
SelectionConfig selection_of(const Config& config);

// The dimensions of the options, else of the variables, for ranks whose places are not known. Error: none are given, or
// wrong ones.
Result<Topology> topology_of(const TopologyOptions& options, const Config& config);

// The chosen schedule, the candidates, and a picture. `bytes`: of one rank's whole buffer. For all-gather-v and
// reduce-scatter-v it may be a block per rank, separated by commas.
Result<std::string> describe_plan(const TopologyOptions& options, const Config& config, const std::string& collective,
                                  const std::string& bytes, const std::string& type);

}  // namespace trestle
