// How messages are cut into segments: shared by the model of steps and the engine, so that both cut alike. A value.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trestle {

struct SegmentRule {
  uint64_t bytes = 256 * 1024;
  uint32_t per_message = 0;  // not 0: every message into so many (1: whole messages), whatever its size
};

// Size of the segments of a message: whole cache lines, so that no element is cut. All but the last are of this size.
inline uint64_t segment_bytes_of(const SegmentRule& rule, uint64_t message_bytes) {
  static constexpr uint64_t kLine = 64;
  if (rule.per_message == 0) return std::max(rule.bytes, kLine);
  const uint64_t part = (message_bytes + rule.per_message - 1) / rule.per_message;
  return std::max(kLine, (part + kLine - 1) / kLine * kLine);
}

// A message of no bytes is one segment.
inline uint64_t segments_of(uint64_t message_bytes, uint64_t segment_bytes) {
  return std::max<uint64_t>(1, (message_bytes + segment_bytes - 1) / segment_bytes);
}

}  // namespace trestle
