// Call: one call of the API whose arguments have been checked. Value type; the buffers stay the caller's.
#pragma once

#include <cstdint>

#include "engine/prepare/prepared.h"

namespace trestle {

struct Call {
  PrepareRequest request;  // request.peer >= 0: point to point
  bool sending = false;
  bool measuring = false;  // made by the library to measure, not by the user
  const void* send = nullptr;
  void* recv = nullptr;
  int64_t timeout_ns = -1;  // 0: none; -1: the communicator's
};

}  // namespace trestle
