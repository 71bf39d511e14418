// Reads small files of the kernel, such as those below /sys. Values; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace trestle {

// The first line of a file, without its end. An empty file has an empty one. Error (kSystemError): it cannot be read.
Result<std::string> first_line(const std::string& path);

// The number in a file; `unknown` if there is none. Some drivers answer a read with an error.
int64_t number_in(const std::string& path, int64_t unknown);

}  // namespace trestle
