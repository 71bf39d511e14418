// Stamps of operations on a board: the check of the operation and the low bits of its number, which distinguish equal
// calls in a row. Pure functions, any thread.
#pragma once

#include <cstdint>

#include "express/board.h"
#include "express/express.h"

namespace trestle {

inline constexpr int kStampNumberBits = 12;
inline constexpr uint64_t kStampNumberMask = (uint64_t{1} << kStampNumberBits) - 1;
inline constexpr uint64_t kStampCheckMask = (uint64_t{1} << kCheckBits) - 1;
static_assert(kCheckBits + kStampNumberBits <= kStampBits);

inline uint64_t stamp_of(const ExpressCall& call) {
  return call.check << kStampNumberBits | (call.number & kStampNumberMask);
}

// The operation with this stamp, which another rank runs in place of `call`. Its number is right within 2^11 of ours.
inline Express::Other other_by_stamp(const ExpressCall& call, uint64_t stamp) {
  const uint64_t ahead = (stamp - call.number) & kStampNumberMask;
  const bool behind = ahead > kStampNumberMask / 2 && call.number + ahead > kStampNumberMask;
  return {call.number + ahead - (behind ? kStampNumberMask + 1 : 0), (stamp >> kStampNumberBits) & kStampCheckMask};
}

}  // namespace trestle
