// Writes a command's result to a file of the user. Any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace trestle {

// Errors (kInvalidArgument) name the path and the cause. After an error part of the file may have been written.
Status write_file(const std::string& path, const std::string& text);

}  // namespace trestle
