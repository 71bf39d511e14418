#include "bindings/nccl/answers.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "bindings/nccl/groups.h"
#include "trestle/log.h"

namespace trestle::nccl {

namespace {

struct Refusal {
  char sentence[kSentenceBytes];
  bool is_last;  // no call was refused by libtrestle.so after it
};
thread_local Refusal refusal = {};

bool has_failed(trestleComm_t comm) {
  trestleResult_t state = trestleSuccess;
  if (comm == nullptr || trestleCommGetAsyncError(comm, &state) != trestleSuccess) return false;
  return state != trestleSuccess && state != trestleInProgress;
}

}  // namespace

Result code_of(trestleResult_t result) {
  if (result >= trestleSuccess && result <= trestleTimeout) return static_cast<Result>(result);
  if (result == trestleAborted) return Result::kRemoteError;
  if (result == trestleReductionFailed) return Result::kInvalidUsage;
  return Result::kInternalError;
}

Result answer(trestleResult_t result) {
  if (result != trestleSuccess && result != trestleInProgress) refusal.is_last = false;
  return code_of(result);
}

Result refuse(Result code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(refusal.sentence, sizeof refusal.sentence, format, arguments);
  va_end(arguments);
  refusal.is_last = true;
  refuse_group(code);
  return code;
}

Result refuse_again(Result code, const char* sentence) {
  if (sentence != refusal.sentence) std::snprintf(refusal.sentence, sizeof refusal.sentence, "%s", sentence);
  refusal.is_last = true;
  return code;
}

const char* last_refusal() {
  return refusal.sentence;
}

void remark(const char* format, ...) {
  char line[2 * kSentenceBytes];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  (void)trestleLog(trestleLogInfo, line);
}

NCCL_API(Result, GetVersion, (int* version)) {
  if (version == nullptr) return refuse(Result::kInvalidArgument, "GetVersion: version is NULL");
  *version = kVersion;
  return Result::kSuccess;
}

NCCL_API(const char*, GetErrorString, (Result result)) {
  if (result < Result::kSuccess || result >= Result::kNumResults) return "unknown result code";
  return trestleGetErrorString(static_cast<trestleResult_t>(result));
}

// A communicator's own failure says more than the last refused call.
NCCL_API(const char*, GetLastError, (trestleComm_t comm)) {
  if (refusal.is_last && !has_failed(comm)) return refusal.sentence;
  return trestleGetLastError(comm);
}

// The log is configured by the TRESTLE_DEBUG variables, which are read once.
NCCL_API(void, ResetDebugInit, ()) {}

}  // namespace trestle::nccl
