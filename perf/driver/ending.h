// How a perf binary ends early: the exit codes of nccl-tests, and the one place where a failed call ends the process.
//
// The kernel cleans up after a benchmark that cannot go on. The other ranks fail too, because the library notices a
// dead process at once. Any thread may call.
#pragma once

#include <trestle/trestle.h>

#include <functional>
#include <string>

namespace trestle::perf {

enum ExitCode : int {
  kExitFine = 0,
  kExitInternal = 1,
  kExitDevice = 2,  // a call of the GPU's driver
  kExitLibrary = 3,
  kExitTimeout = 4,
  kExitWrong = 7,  // wrong results, or less bandwidth than requested
  kExitArguments = 255,
};

// Sets a function that fail() calls with its sentence before the process ends: the last chance to write a report. Set
// once, by main, before other threads exist.
void at_failure(std::function<void(const std::string& sentence)> last_words);

// The source line of a failed call, filled in by the default arguments below.
struct Place {
  const char* file;
  int line;
};

// Prints " .. <host> pid <pid>: Test failure <file>:<line>: <sentence>" and ends the process. Only the first caller's
// line is printed. The place is the caller's (std::source_location is missing where Clang 14 uses GCC's library).
[[noreturn]] void fail(ExitCode code, const std::string& sentence, Place where = {__builtin_FILE(), __builtin_LINE()});

// Ends the process with the library's own sentence, unless `result` is success. comm may be null.
void require(trestleResult_t result, trestleComm_t comm = nullptr, Place where = {__builtin_FILE(), __builtin_LINE()});

// This host's name.
std::string host_name();

}  // namespace trestle::perf
