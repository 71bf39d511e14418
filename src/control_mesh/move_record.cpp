#include "control_mesh/move_record.h"

#include "control_mesh/byte_text.h"

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

}  // namespace trestle
