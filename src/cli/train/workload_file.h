// A user's workload of a training step, from a JSON file. Any thread.
//
//   {"tensors": [{"name": "w0", "bytes": 4, "forward_s": 1.0, "backward_s": 2.0}, ...]}
//
// Tensors are in forward order. The name may be left out.
#pragma once

#include <string>

#include "base/result.h"
#include "gradient/workload.h"

namespace trestle {

// Errors (kInvalidArgument) name source, line, tensor and field: an unknown or missing field, a negative time, no
// tensors, more than 4096.
Result<GradientWorkload> parse_workload(const std::string& json, const std::string& source);
// Errors: also a file that cannot be read, or of more than 4 MiB.
Result<GradientWorkload> read_workload_file(const std::string& path);

}  // namespace trestle
