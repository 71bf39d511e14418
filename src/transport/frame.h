// The header in front of everything that travels over a rail. Pure functions, any thread.
//
// 64 bytes, little-endian: type u8, flags u8, high part of the check of the operation u16, check of the connection u32,
// credit u32, low part of the check of the operation u32, operation u64, phase u32, message u32 (flag 1: instead of
// both the bytes of the whole message u64, high half first), offset u64, bytes u64, at u64, length u64. kEager, kData
// and kProbe are followed by `length` bytes of payload, the others by the next header. There is no magic number: the
// check of the connection serves the same purpose, and the check of the operation takes its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "transport/transport.h"

namespace trestle {

enum class FrameType : uint8_t {
  kEager = 1,  // a message sent without waiting for kClear
  kData = 2,   // the answer to kClear
  kClear = 3,  // clear to send: the receive of `tag`, of `bytes`, is posted
  // A message waits for kClear: a small one without credit, or one that states its whole size.
  kRequest = 4,
  kCredit = 5,       // only carries credit
  kGoodbye = 6,      // the last frame: the sender closes in order
  kGoodbyeSeen = 7,  // the answer: everything before kGoodbye was read
  kWelcome = 8,      // this connection becomes the pair's; the acceptor's first frame
  kYield = 9,        // use my connection to you instead; the acceptor's first frame
  kNotice = 10,      // only states what its sender runs
  // Only between ranks with several rails (message/peer_rails.h):
  kAck = 11,         // what has come over this rail
  kRailEnd = 12,     // the sender has ended its connection over a rail
  kProbe = 13,       // its payload is dropped: measures a rail that carries nothing else
  kRailSilent = 14,  // nothing is acknowledged over a rail: asks the peer to end its connection
};

constexpr bool has_payload(FrameType type) {
  return type == FrameType::kEager || type == FrameType::kData || type == FrameType::kProbe;
}

struct Frame {
  FrameType type = FrameType::kCredit;
  uint32_t credit = 0;  // eager credit that is given back, in bytes
  MessageTag tag;
  uint64_t bytes = 0;   // of the message
  uint64_t at = 0;      // where in the message the payload of this frame begins
  uint64_t length = 0;  // of the payload
};

inline constexpr size_t kFrameBytes = 64;

// Distinguishes connections of other jobs, pairs and directions. A cheap check for our own bugs, on top of the
// handshake.
uint32_t frame_check(std::string_view job, int32_t from, int32_t to);

void encode_frame(const Frame& frame, uint32_t check, std::byte* out);
// kRemoteError, with a message that continues the peer's name ("sent ..."), when the 64 bytes at `in` are no header of
// this connection.
Result<Frame> decode_frame(const std::byte* in, uint32_t check);

}  // namespace trestle
