// The line of the log that says which Trestle this is. Any thread; once per process.
#pragma once

#include <string>

#include "base/config/config.h"

namespace trestle {

// "Trestle 0.1.0; compiler 12.2.0; transports loopback, shm, tcp; kernels AVX3", and what cannot be used here, with the
// reason ("no tcp (...)").
std::string version_text();

// Logs it at VERSION and all levels beyond, the first time that it is called in this process; nothing where nobody has
// asked for a log (TRESTLE_DEBUG stands at its default).
void log_version(const Config& config);

}  // namespace trestle
