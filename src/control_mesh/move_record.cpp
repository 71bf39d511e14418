#include "control_mesh/move_record.h"

#include <array>
#include <span>

#include "base/text/byte_text.h"
#include "transport/socket/socket.h"

namespace trestle {

std::string encode(const MoveRecord& record) {
  return ByteWriter()
      .integer(static_cast<uint8_t>(record.kind))
      .integer(static_cast<uint8_t>(record.out))
      .integer(record.step)
      .integer(uint8_t{0})
      .integer(record.number)
      .integer(record.came)
      .take();
}

std::optional<MoveRecord> decode_move_record(std::string_view bytes) {
  ByteReader in(bytes);
  MoveRecord record;
  const auto kind = in.integer<uint8_t>();
  const auto out = in.integer<uint8_t>();
  record.step = in.integer<uint8_t>();
  const auto zero = in.integer<uint8_t>();
  record.number = in.integer<uint32_t>();
  record.came = in.integer<uint64_t>();
  const bool known =
      kind >= static_cast<uint8_t>(MoveRecord::Kind::kAsk) && kind <= static_cast<uint8_t>(MoveRecord::Kind::kGone);
  if (!in.at_end() || !known || out > 1 || zero != 0) return std::nullopt;
  record.kind = static_cast<MoveRecord::Kind>(kind);
  record.out = out == 1;
  return record;
}

Result<bool> read_move_record(int fd, std::string& bytes) {
  std::array<std::byte, kMoveRecordBytes> buffer;
  while (bytes.size() < kMoveRecordBytes) {
    const size_t got = TRY(receive_bytes(fd, std::span(buffer).first(kMoveRecordBytes - bytes.size())));
    if (got == kEndOfStream) return Error{Code::kRemoteError, "the peer closed the connection"};
    if (got == 0) return false;
    bytes.append(reinterpret_cast<const char*>(buffer.data()), got);
  }
  return true;
}

}  // namespace trestle
