#include "base/result.h"

namespace trestle {

const char* to_string(Code code) {
  switch (code) {
    case Code::kSuccess:
      return "no error";
    case Code::kUnhandledDeviceError:
      return "unhandled device error";
    case Code::kSystemError:
      return "system error";
    case Code::kInternalError:
      return "internal error";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kInvalidUsage:
      return "invalid usage";
    case Code::kRemoteError:
      return "remote error";
    case Code::kInProgress:
      return "in progress";
    case Code::kTimeout:
      return "timeout";
    case Code::kAborted:
      return "aborted";
    case Code::kReductionFailed:
      return "reduction failed";
  }
  return "unknown result code";
}

}  // namespace trestle
