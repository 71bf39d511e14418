// Fabric: the agreed identity of a rail. Rails of two hosts are ends of one fabric if their addresses are in one
// subnet; names of interfaces may differ between hosts.
//
// A value with a total order that all hosts share; any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "transport/socket/socket.h"

namespace trestle {

struct Fabric {
  AddressFamily family = AddressFamily::kAny;  // kAny: not known
  std::array<uint8_t, 16> network{};           // the address without the bits of the host
  int prefix = 0;
  int place = 1;  // from 1: of a host's interfaces in the subnet, by name
  auto operator<=>(const Fabric&) const = default;

  bool is_known() const { return family != AddressFamily::kAny; }
  // "10.0.1.0/24", "fd00::/64"; "10.0.1.0/24#2" from the second place on; "an unnamed network".
  std::string text() const;
};

// Of an address with so many bits of network: at most 32 in IPv4, 128 in IPv6.
Fabric fabric_of(const SocketAddress& address, int prefix);

// The bits of an address.
constexpr int address_bits(AddressFamily family) {
  return family == AddressFamily::kIpv6 ? 128 : 32;
}

// fe80::/10: says nothing about the fabric, and means something only with the name of the interface.
bool is_link_local_v6(const SocketAddress& address);

}  // namespace trestle
