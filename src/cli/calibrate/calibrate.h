// `trestle calibrate`: measures the links between the ranks of a job, on every rank of it. Also lists and removes what
// is kept of earlier measurements, in any process.
#pragma once

#include <string>

#include "base/config/config.h"
#include "base/result.h"

namespace trestle {

// Measures the links and keeps the result for later jobs on these hosts (unless TRESTLE_CALIBRATE is off). Also writes
// it to the topology file `out` ("" : none). Only rank 0 writes. Returns the report on rank 0 and "" on the other
// ranks. Blocks until all ranks are done. Errors: a job of one rank, errors of the library and of files.
Result<std::string> calibrate(const Config& config, const std::string& out);

// The kept calibrations of this user (TRESTLE_CALIBRATION_DIR), with their origins and speeds.
Result<std::string> list_calibrations(const Config& config);
// Removes all of them, and says which. Other files stay. Errors: there is no folder; some cannot be removed, and then
// the message has these and the removed ones.
Result<std::string> forget_calibrations(const Config& config);

}  // namespace trestle
