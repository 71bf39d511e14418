// `trestle calibrate`: measures the links between the ranks of a job. Runs on every rank of it.
#pragma once

#include <string>

#include "base/config/config.h"
#include "base/result.h"

namespace trestle {

// Measures the links and keeps the result for later jobs on these hosts (unless TRESTLE_CALIBRATE is off). Also writes
// it to the topology file `out` ("" : none). Only rank 0 writes. Returns the report on rank 0 and "" on the other
// ranks. Blocks until all ranks are done. Errors: a job of one rank, errors of the library and of files.
Result<std::string> calibrate(const Config& config, const std::string& out);

}  // namespace trestle
