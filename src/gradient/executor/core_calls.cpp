#include "gradient/executor/core_calls.h"

namespace trestle {

Status core_status(trestleResult_t result, trestleComm_t comm) {
  if (result == trestleSuccess) return {};
  return core_failure(result, trestleGetLastError(comm));
}

Error core_failure(trestleResult_t result, std::string sentence) {
  if (sentence.empty()) sentence = "the communicator was aborted or destroyed";
  return {static_cast<Code>(result), std::move(sentence)};
}

}  // namespace trestle
