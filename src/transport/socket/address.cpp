#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "transport/socket/socket.h"

namespace trestle {
namespace {

const sockaddr_in& v4(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in&>(address.storage);
}
const sockaddr_in6& v6(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in6&>(address.storage);
}

Error bad_address(std::string_view text, const char* why) {
  return Error{Code::kInvalidArgument, "'" + std::string(text) + "' is not an address: " + why +
                                           "; it is written host:port or [IPv6 address]:port"};
}

template <class Plain>
SocketAddress stored(const Plain& plain) {
  SocketAddress address;
  std::memcpy(&address.storage, &plain, sizeof plain);
  address.length = sizeof plain;
  return address;
}

SocketAddress plain_v4(const void* host) {
  sockaddr_in plain{};
  plain.sin_family = AF_INET;
  std::memcpy(&plain.sin_addr, host, sizeof plain.sin_addr);
  return stored(plain);
}

// The one form that HostAddress keeps, whichever form of a host's address it gets.
SocketAddress canonical(const SocketAddress& address) {
  if (address.length == 0) return {};
  if (address.storage.ss_family == AF_INET) return plain_v4(&v4(address).sin_addr);
  if (address.storage.ss_family != AF_INET6) return {};
  const in6_addr& host = v6(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&host)) return plain_v4(&host.s6_addr[12]);
  sockaddr_in6 plain{};
  plain.sin6_family = AF_INET6;
  plain.sin6_addr = host;
  if (IN6_IS_ADDR_LINKLOCAL(&host)) plain.sin6_scope_id = v6(address).sin6_scope_id;
  return stored(plain);
}

}  // namespace

Result<AddressFamily> parse_family(std::string_view text) {
  if (text.empty() || text == "auto") return AddressFamily::kAny;
  if (text == "AF_INET") return AddressFamily::kIpv4;
  if (text == "AF_INET6") return AddressFamily::kIpv6;
  return Error{Code::kInvalidArgument,
               "'" + std::string(text) + "' is not an address family: it must be auto, AF_INET or AF_INET6"};
}

AddressFamily SocketAddress::family() const {
  if (length == 0) return AddressFamily::kAny;
  return storage.ss_family == AF_INET6 ? AddressFamily::kIpv6 : AddressFamily::kIpv4;
}

uint16_t SocketAddress::port() const {
  if (length == 0) return 0;
  return ntohs(storage.ss_family == AF_INET6 ? v6(*this).sin6_port : v4(*this).sin_port);
}

void SocketAddress::set_port(uint16_t port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
}

bool SocketAddress::is_loopback() const {
  if (length == 0) return false;
  if (storage.ss_family == AF_INET) return ntohl(v4(*this).sin_addr.s_addr) >> 24 == 127;
  const in6_addr& address = v6(*this).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  if (length == 0 || other.length == 0) return length == other.length;
  if (storage.ss_family != other.storage.ss_family || port() != other.port()) return false;
  if (storage.ss_family == AF_INET) return v4(*this).sin_addr.s_addr == v4(other).sin_addr.s_addr;
  return std::memcmp(&v6(*this).sin6_addr, &v6(other).sin6_addr, sizeof(in6_addr)) == 0 &&
         v6(*this).sin6_scope_id == v6(other).sin6_scope_id;
}

Result<HostPort> parse_host_port(std::string_view text) {
  std::string_view host;
  std::string_view port;
  if (!text.empty() && text[0] == '[') {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return bad_address(text, "the ']' is missing");
    if (end + 1 >= text.size() || text[end + 1] != ':') return bad_address(text, "the port is missing");
    host = text.substr(1, end - 1);
    port = text.substr(end + 2);
  } else {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return bad_address(text, "the port is missing");
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (host.find(':') != std::string_view::npos) return bad_address(text, "an IPv6 address belongs in brackets");
  }
  if (host.empty()) return bad_address(text, "the host is missing");
  if (host.find('\0') != std::string_view::npos) return bad_address(text, "it contains a zero byte");
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535)
    return bad_address(text, "the port is not a number from 1 to 65535");
  return HostPort{std::string(host), static_cast<uint16_t>(number)};
}

std::string format_host_port(const HostPort& place) {
  const bool bare_v6 = place.host.find(':') != std::string::npos && !place.host.starts_with('[');
  return (bare_v6 ? "[" + place.host + "]" : place.host) + ":" + std::to_string(place.port);
}

Result<SocketAddress> parse_address(std::string_view text) {
  const HostPort parts = TRY(parse_host_port(text));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (getaddrinfo(parts.host.c_str(), std::to_string(parts.port).c_str(), &hints, &list) != 0)
    return bad_address(text, "the host is not a numeric IPv4 or IPv6 address");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  SocketAddress address;
  std::memcpy(&address.storage, list->ai_addr, list->ai_addrlen);
  address.length = list->ai_addrlen;
  return address;
}

std::string format_address(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.length == 0) return "(no address)";
  if (address.storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &v4(address).sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(address.port());
  }
  inet_ntop(AF_INET6, &v6(address).sin6_addr, text, sizeof text);
  std::string host = text;
  if (const uint32_t scope = v6(address).sin6_scope_id; scope != 0) {
    char name[IF_NAMESIZE];
    host += "%";
    host += if_indextoname(scope, name) != nullptr ? std::string(name) : std::to_string(scope);
  }
  return "[" + host + "]:" + std::to_string(address.port());
}

std::string format_host(const SocketAddress& address) {
  const std::string text = format_address(address);
  return text.substr(0, text.rfind(':'));
}

HostAddress::HostAddress(const SocketAddress& address) : address_(canonical(address)) {}

std::string HostAddress::text() const {
  if (!is_known()) return {};
  const std::string host = format_host(address_);
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

Result<HostAddress> parse_host(std::string_view text) {
  const std::string host(text);
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  const Result<SocketAddress> read = parse_address(format_host_port({host, 1}));
  // Brackets belong to IPv6, and a text with a port has its last colon outside of them.
  if (read.ok() && (!has_brackets || read.value().family() == AddressFamily::kIpv6)) return HostAddress(read.value());
  return Error{Code::kInvalidArgument, "'" + host + "' is not a numeric IPv4 or IPv6 address"};
}

}  // namespace trestle
