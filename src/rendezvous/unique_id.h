// UniqueId: the meeting point of one communicator's ranks, and their common secret, in 128 bytes.
//
// Value types, any thread. The bytes travel over any channel that the user trusts. They hold a secret, so they are
// never logged. Wire form, integers little-endian: magic u32, version u32, family u8 (4 or 6), 3 zero bytes, port u16,
// 2 zero bytes, ip 16 bytes (an IPv4 address in the first 4), job 16 bytes, secret 32 bytes, zeros, checksum u64 over
// all bytes before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/job_id.h"
#include "base/result.h"

namespace trestle {

using UniqueIdBytes = std::array<std::byte, 128>;  // all zero: no id; the launcher's variables say where to meet
using JobSecret = std::array<std::byte, 32>;

struct UniqueId {
  std::string ip;  // numeric, IPv4 or IPv6
  uint16_t port = 0;
  JobId job{};
  JobSecret secret{};
  bool operator==(const UniqueId&) const = default;
};

bool is_zero(const UniqueIdBytes& bytes);
// kInvalidArgument when the ip is not numeric.
Result<UniqueIdBytes> encode(const UniqueId& id);
// kInvalidArgument says what is wrong: not an id, of another version, damaged.
Result<UniqueId> decode(const UniqueIdBytes& bytes);

}  // namespace trestle
