// The rule that cuts messages into segments. The model of steps and the engine share it, so both cut alike. A value.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace trestle {

struct SegmentRule {
  uint64_t bytes = 256 * 1024;
  uint32_t per_message = 0;  // not 0: every message is cut into so many (1: whole messages), whatever its size
};

// The size of a message's segments, except the last one. A multiple of the cache line, so that no element is cut.
inline uint64_t segment_bytes_of(const SegmentRule& rule, uint64_t message_bytes) {
  static constexpr uint64_t kLine = 64;
  if (rule.per_message == 0) return std::max(rule.bytes, kLine);
  const uint64_t part = (message_bytes + rule.per_message - 1) / rule.per_message;
  return std::max(kLine, (part + kLine - 1) / kLine * kLine);
}

// The segment size on a rail of known rate: about four milliseconds per segment. So even a slow rail forwards a long
// block while it arrives, and older phases wait only shortly. A power of two from 16 KiB to `most`. Rate 0: unknown,
// `most`.
inline uint64_t segment_bytes_at(uint64_t bandwidth_mbps, uint64_t most) {
  static constexpr uint64_t kFewest = 16 * 1024;
  static constexpr uint64_t kBytesPerMbps = 500;
  if (bandwidth_mbps == 0) return most;
  return std::min(most, std::max(kFewest, std::bit_floor(bandwidth_mbps * kBytesPerMbps)));
}

// A message of no bytes is one segment.
inline uint64_t segments_of(uint64_t message_bytes, uint64_t segment_bytes) {
  return std::max<uint64_t>(1, (message_bytes + segment_bytes - 1) / segment_bytes);
}

}  // namespace trestle
