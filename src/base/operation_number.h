// Numbers of operations: how the ranks of a communicator know which of their calls belong together.
//
// Collectives count in the order of the calls, which is the same on all ranks. Messages between two ranks count per
// pair and direction. Calls that were captured into a graph count apart, in the order of the captures, and each launch
// of the graph is one more replay of them. So the numbers of a graph's operations do not depend on when a rank's device
// comes to them.
#pragma once

#include <cstdint>
#include <string>

namespace trestle {

// Bits of a number. From the highest one on: message, captured, and for a captured call 30 of the capture and 32 of the
// replay.
inline constexpr uint64_t kPointToPoint = uint64_t{1} << 63;
inline constexpr uint64_t kCaptured = uint64_t{1} << 62;
inline constexpr int kReplayBits = 32;
inline constexpr uint64_t kMostCaptures = uint64_t{1} << 30;

constexpr uint64_t captured_number(uint64_t capture) {
  return kCaptured | capture << kReplayBits;
}
// After 2^32 replays it begins anew, when nothing is left of the replays before.
constexpr uint64_t replay_number(uint64_t captured, uint64_t replay) {
  return captured | (replay & ((uint64_t{1} << kReplayBits) - 1));
}

// The number of the capture, before its first replay.
constexpr uint64_t capture_of(uint64_t number) {
  return number >> kReplayBits << kReplayBits;
}

// what: "operation" or "message". "operation 7", or "replay 5 of captured operation 3"; both count from 0.
inline std::string numbered(const char* what, uint64_t number) {
  if ((number & kCaptured) == 0) return std::string(what) + " " + std::to_string(number & ~kPointToPoint);
  const uint64_t capture = (number & ~(kPointToPoint | kCaptured)) >> kReplayBits;
  return "replay " + std::to_string(replay_number(0, number)) + " of captured " + what + " " + std::to_string(capture);
}

}  // namespace trestle
