// MoveRecord: what two ranks tell each other over a new connection of a link, after the handshake. The side that
// connects asks, the other one answers; the frames of the link follow.
//
// A value. On the wire: kind u8, out u8, step u8, zero u8, number u32, came u64. Decoding trusts nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace trestle {

struct MoveRecord {
  // kAsk: this connection is to carry the link. kTaken: it does. kYield: a connection that the other side makes will.
  // kGone: the link has ended for good.
  enum class Kind : uint8_t { kAsk = 1, kTaken, kYield, kGone };
  Kind kind = Kind::kAsk;
  bool out = false;     // kAsk: the link is one to rank + 2^step, as the asking rank sees it; else to rank - 2^step
  uint8_t step = 0;     // kAsk
  uint32_t number = 0;  // of the connection: grows, so that an old one that comes late is recognised
  uint64_t came = 0;    // counted frames that have come: kAsk, kTaken
  bool operator==(const MoveRecord&) const = default;
};

inline constexpr size_t kMoveRecordBytes = 16;
std::string encode(const MoveRecord& record);
std::optional<MoveRecord> decode_move_record(std::string_view bytes);
// Reads the rest of a record whose beginning is in `bytes`, and no byte after it. false: the socket would block; true:
// it is complete. kRemoteError: the connection has ended.
Result<bool> read_move_record(int fd, std::string& bytes);

}  // namespace trestle
