// The log line with Trestle's version. Any thread; once per process.
#pragma once

#include <string>

#include "base/config/config.h"

namespace trestle {

// "Trestle 0.1.0; compiler 12.2.0; transports loopback, shm, tcp; kernels AVX3", and what cannot be used here, with the
// reason ("no tcp (...)").
std::string version_text();
// "0.1.0": the version of the library.
std::string version_number();

// Logs the line at VERSION and above, at the first call in this process. Logs nothing if the user has not asked for a
// log (TRESTLE_DEBUG has its default).
void log_version(const Config& config);

}  // namespace trestle
