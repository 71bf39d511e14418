#include "gradient/executor/core_calls.h"

namespace trestle {

Status core_status(trestleResult_t result, trestleComm_t comm) {
  if (result == trestleSuccess) return {};
  return Error{static_cast<Code>(result), trestleGetLastError(comm)};
}

}  // namespace trestle
