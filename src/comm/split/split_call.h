// SplitCall: one rank's call of CommSplit. Value type.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "comm/setup/settings.h"

namespace trestle {

inline constexpr int32_t kNoColor = -1;

struct SplitCall {
  uint64_t number = 0;  // from Communicator::split_number()
  int32_t color = 0;    // kNoColor: not part of any new communicator
  int32_t key = 0;
  bool has_place = true;  // false: newcomm is NULL, and all ranks are told
  // Settings of the new communicator. An error in them is told to all ranks, so that none waits.
  Result<CommunicatorSettings> settings;
};

}  // namespace trestle
