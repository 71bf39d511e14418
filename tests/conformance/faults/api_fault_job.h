// A job through the calls of the API, for two ranks that are threads of one process. Its calls go on where one of them
// was refused for want of a resource.
#pragma once

#include <trestle/trestle.h>

#include <string>

namespace api {

inline constexpr int kFaultRanks = 2;

struct JobResult {
  trestleResult_t result = trestleSuccess;  // of the first call that did not work
  std::string call;
  std::string sentence;
};

// Runs one rank's part. Both ranks run it at the same time. A refused call is made once more: it has had no effect.
// Ends at the first call that fails twice, or with another code. Wrong data is trestleInternalError.
JobResult run_fault_job(int rank, trestleComm_t comm);

}  // namespace api
