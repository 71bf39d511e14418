// `trestle calibrate`: measures the links between the ranks of a job. Runs on every rank of it.
#pragma once

#include <string>

#include "base/config/config.h"
#include "base/result.h"

namespace trestle {

// Measures, keeps the result for later jobs on these hosts (unless TRESTLE_CALIBRATE is off) and writes it to the
// topology file `out` ("" : none); rank 0 does the writing. The text is rank 0's, "" elsewhere. Blocks until all ranks
// are through. Errors: one rank only, those of the library and of files.
Result<std::string> calibrate(const Config& config, const std::string& out);

}  // namespace trestle
