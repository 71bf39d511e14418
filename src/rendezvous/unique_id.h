// UniqueId: the meeting point of one communicator's ranks, and their common secret, in 128 bytes.
//
// Value types, any thread. The bytes travel over any channel that the user trusts. They hold a secret, so they are
// never logged. Wire form, integers little-endian: magic u32, version u32, job 16 bytes, secret 32 bytes, network u64,
// number of addresses u8, the addresses, zeros, checksum u64 over all bytes before it. An address: family u8 (4 or 6),
// port u16, ip 4 or 16 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/job_id.h"
#include "base/result.h"
#include "transport/socket/socket.h"

namespace trestle {

using UniqueIdBytes = std::array<std::byte, 128>;  // all zero: no id; the launcher's variables say where to meet
using JobSecret = std::array<std::byte, 32>;

struct UniqueId {
  std::vector<SocketAddress> addresses;  // with ports; tried in turn. Seven of IPv4 fit, or two of IPv6 and two of IPv4
  JobId job{};
  JobSecret secret{};
  uint64_t network = 0;  // where all addresses are of loopback: own_network(); else 0
  bool operator==(const UniqueId&) const = default;
};

// A number for network_identity(); 0: not known.
uint64_t own_network();
// "10.0.0.1:40001, 10.0.1.1:40002"
std::string addresses_text(const UniqueId& id);

bool is_zero(const UniqueIdBytes& bytes);
// With as many of the addresses as fit. kInvalidArgument: there is none.
Result<UniqueIdBytes> encode(const UniqueId& id);
// kInvalidArgument says what is wrong: not an id, of another version, damaged.
Result<UniqueId> decode(const UniqueIdBytes& bytes);

}  // namespace trestle
