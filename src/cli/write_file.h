// Writes what a command made to a file of the user. Any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace trestle {

// Errors (kInvalidArgument) name the path and why. A file that cannot be written whole may be left in part.
Status write_file(const std::string& path, const std::string& text);

}  // namespace trestle
