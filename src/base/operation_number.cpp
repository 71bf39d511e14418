#include "base/operation_number.h"

namespace trestle {

std::string numbered(const char* what, uint64_t number) {
  if ((number & kCaptured) == 0) return std::string(what) + " " + std::to_string(number & ~kPointToPoint);
  const uint64_t capture = (number & ~(kPointToPoint | kCaptured)) >> kReplayBits;
  return "replay " + std::to_string(replay_number(0, number)) + " of captured " + what + " " + std::to_string(capture);
}

}  // namespace trestle
