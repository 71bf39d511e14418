#include "transport/frame.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace trestle {
namespace {

constexpr uint8_t kWholeFlag = 1;  // phase and message hold MessageTag::whole

struct Wire {
  uint8_t type;
  uint8_t flags;
  uint16_t operation_check_high;
  uint32_t check;
  uint32_t credit;
  uint32_t operation_check_low;
  uint64_t operation;
  uint32_t phase;
  uint32_t message;
  uint64_t offset;
  uint64_t bytes;
  uint64_t at;
  uint64_t length;
};
static_assert(sizeof(Wire) == kFrameBytes);
static_assert(std::endian::native == std::endian::little,
              "frames are little-endian and are written as they lie in memory");

}  // namespace

uint32_t frame_check(std::string_view job, int32_t from, int32_t to) {
  return static_cast<uint32_t>(
      Hasher().string(job).integer(static_cast<uint32_t>(from)).integer(static_cast<uint32_t>(to)).digest());
}

void encode_frame(const Frame& frame, uint32_t check, std::byte* out) {
  const uint64_t whole = frame.tag.whole;
  CHECK(whole == 0 || (frame.tag.phase == 0 && frame.tag.message == 0), "a message of many says how long all of it is");
  const Wire wire{static_cast<uint8_t>(frame.type),
                  whole != 0 ? kWholeFlag : uint8_t{0},
                  static_cast<uint16_t>(frame.tag.check >> 32),
                  check,
                  frame.credit,
                  static_cast<uint32_t>(frame.tag.check),
                  frame.tag.operation,
                  whole != 0 ? static_cast<uint32_t>(whole >> 32) : frame.tag.phase,
                  whole != 0 ? static_cast<uint32_t>(whole) : frame.tag.message,
                  frame.tag.offset,
                  frame.bytes,
                  frame.at,
                  frame.length};
  std::memcpy(out, &wire, sizeof wire);
}

Result<Frame> decode_frame(const std::byte* in, uint32_t check) {
  Wire wire;
  std::memcpy(&wire, in, sizeof wire);
  if (wire.check != check) return Error{Code::kRemoteError, "sent data that is not a frame of this connection"};
  if ((wire.flags & ~kWholeFlag) != 0) return Error{Code::kRemoteError, "sent a frame with unknown flags"};
  if (wire.type < static_cast<uint8_t>(FrameType::kEager) || wire.type > static_cast<uint8_t>(FrameType::kRailSilent))
    return Error{Code::kRemoteError, "sent a frame of the unknown type " + std::to_string(wire.type)};
  Frame frame;
  frame.type = static_cast<FrameType>(wire.type);
  frame.credit = wire.credit;
  const uint64_t operation_check = uint64_t{wire.operation_check_high} << 32 | wire.operation_check_low;
  frame.tag = {wire.operation, wire.phase, wire.message, wire.offset, operation_check};
  if ((wire.flags & kWholeFlag) != 0) {
    frame.tag.whole = uint64_t{wire.phase} << 32 | wire.message;
    frame.tag.phase = frame.tag.message = 0;
  }
  frame.bytes = wire.bytes;
  frame.at = wire.at;
  frame.length = wire.length;
  return frame;
}

}  // namespace trestle
