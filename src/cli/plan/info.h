// `trestle topo` and `trestle plan`: what the library would decide, as text. Pure but for reading a topology file.
#pragma once

#include <cstdint>
#include <string>

#include "base/config/config.h"
#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

struct TopologyOptions {
  std::string dims;   // "" : as TRESTLE_DIMS
  std::string file;   // "" : as TRESTLE_TOPO_FILE
  int64_t ranks = 0;  // 0: as many as the dimensions hold; alone: in one dimension
};

// What the variables ask for.
TopologyRequest topology_request(const Config& config);

Result<std::string> describe_topology(const TopologyOptions& options, const Config& config, bool json);
// The chosen schedule, what it was chosen from, and its picture. `bytes`: of the whole buffer of one rank, or of
// all-gather-v and reduce-scatter-v also a block per rank, separated by commas.
Result<std::string> describe_plan(const TopologyOptions& options, const Config& config, const std::string& collective,
                                  const std::string& bytes, const std::string& type);

}  // namespace trestle
