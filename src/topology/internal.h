// Functions that the files of src/topology share. Other folders do not include this. Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// The dimensions of a topology file as written, including those of size 1. Errors name source, line and field. If
// nlohmann-json was not found, json_dimensions_absent.cpp replaces this function; it always fails and says why.
Result<std::vector<Dimension>> parse_json_dimensions(const std::string& json, const std::string& source);

// "25", "2.5": what a topology file says as bandwidth_gbps.
std::string gbps_text(uint64_t mbps);

// The nominal speed of a link that a topology file names, one way, 10^6 bit/s: "nvlink4x18" are 18 NVLinks of the
// fourth generation, "pcie5x16" 16 lanes of the fifth. Errors say what is possible.
Result<uint64_t> named_link_mbps(const std::string& text);

// Reads at most 1 MiB of a file.
Result<std::string> read_topology_text(const std::string& path);

// Drops dimensions of size 1 (one rank keeps the first one) and says so in `reason`. Errors, which start with `what`:
// no dimensions, more than kMaxDimensions, more than 2^31 - 1 ranks.
Status drop_single(Topology& topology, const std::string& what);

}  // namespace trestle
