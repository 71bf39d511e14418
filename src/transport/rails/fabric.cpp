#include "transport/rails/fabric.h"

#include <arpa/inet.h>

#include <cstring>

#include "base/check.h"

namespace trestle {

std::string Fabric::text() const {
  if (!is_known()) return "an unnamed network";
  char host[INET6_ADDRSTRLEN] = "";
  inet_ntop(family == AddressFamily::kIpv6 ? AF_INET6 : AF_INET, network.data(), host, sizeof host);
  return std::string(host) + "/" + std::to_string(prefix) + (place > 1 ? "#" + std::to_string(place) : "");
}

Fabric fabric_of(const SocketAddress& address, int prefix) {
  Fabric fabric;
  fabric.family = address.family();
  fabric.prefix = prefix;
  CHECK(fabric.is_known() && prefix >= 0 && prefix <= address_bits(fabric.family), "no address, or no prefix of one");
  if (fabric.family == AddressFamily::kIpv6)
    std::memcpy(fabric.network.data(), &reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr, 16);
  else
    std::memcpy(fabric.network.data(), &reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr, 4);
  for (size_t byte = 0; byte < fabric.network.size(); ++byte) {
    const int kept = prefix - static_cast<int>(byte) * 8;
    if (kept < 8) fabric.network[byte] &= static_cast<uint8_t>(kept <= 0 ? 0 : 0xff << (8 - kept));
  }
  return fabric;
}

bool is_link_local_v6(const SocketAddress& address) {
  if (address.family() != AddressFamily::kIpv6) return false;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr);
}

}  // namespace trestle
