// Reads whole text files that users name.
#pragma once

#include <string>

#include "base/result.h"

namespace trestle {

// The text of a file of at most so many MiB. Errors (kInvalidArgument) begin with what the file is: "topology file
// /x.json: is larger than 1 MiB". Does not block, even if the path is a pipe's.
Result<std::string> read_text_file(const std::string& what, const std::string& path, size_t most_mib);

}  // namespace trestle
