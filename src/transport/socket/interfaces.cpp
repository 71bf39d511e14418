#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "transport/socket/socket.h"
#include "transport/socket/system_error.h"

namespace trestle {
namespace {

bool is_link_local(const SocketAddress& address) {
  if (address.family() != AddressFamily::kIpv6) return false;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr);
}

// Empty: neither IPv4 nor IPv6.
SocketAddress address_of(const ifaddrs& item) {
  SocketAddress address;
  const int family = item.ifa_addr == nullptr ? AF_UNSPEC : item.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return address;
  address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&address.storage, item.ifa_addr, address.length);
  return address;
}

// An alias ("eth0:1") is another address of its interface.
std::string name_of(const ifaddrs& item) {
  const std::string_view label = item.ifa_name;
  return std::string(label.substr(0, label.find(':')));
}

// Smaller is better. A container bridge comes last before loopback: on other hosts its address means something else, or
// nothing.
int undesirability(const Interface& interface) {
  int rank = 0;
  if (interface.loopback)
    rank = 200;
  else if (interface.name.starts_with("docker"))
    rank = 100;
  if (is_link_local(interface.address))
    rank += 20;
  else if (interface.address.family() == AddressFamily::kIpv6)
    rank += 10;
  return rank;
}

}  // namespace

Result<std::vector<Interface>> local_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return socket_error("getifaddrs");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    const SocketAddress address = address_of(*item);
    if (address.length == 0 || (item->ifa_flags & IFF_UP) == 0) continue;
    found.push_back({name_of(*item), item->ifa_name, address, (item->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

std::string interface_fault(const std::string& interface, const SocketAddress& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  const HostAddress wanted(address);
  std::string why = interface + " is gone, or its address has changed";
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    if (name_of(*item) != interface) continue;
    if ((item->ifa_flags & IFF_UP) == 0) return interface + " is down";
    if ((item->ifa_flags & IFF_RUNNING) == 0) return interface + " has no carrier";
    if (wanted == HostAddress(address_of(*item))) why.clear();
  }
  return why;
}

namespace {

bool filter_matches(std::string_view filter, std::string_view name, std::string_view label) {
  bool negated = false;
  bool whole = false;
  if (filter.starts_with('^')) {
    negated = true;
    filter.remove_prefix(1);
  }
  if (filter.starts_with('=')) {
    whole = true;
    filter.remove_prefix(1);
  }
  if (filter.empty()) return true;
  bool listed = false;
  while (!filter.empty()) {
    const size_t comma = std::min(filter.find(','), filter.size());
    const std::string_view item = filter.substr(0, comma);
    const std::string_view called = item.find(':') == std::string_view::npos ? name : label;
    if (!item.empty() && (whole ? called == item : called.starts_with(item))) listed = true;
    filter.remove_prefix(std::min(comma + 1, filter.size()));
  }
  return listed != negated;
}

}  // namespace

bool interface_matches(std::string_view filter, std::string_view name) {
  return filter_matches(filter, name, name);
}

bool interface_matches(std::string_view filter, const Interface& interface) {
  return filter_matches(filter, interface.name, interface.label);
}

Result<std::vector<Interface>> choose_interfaces(std::string_view filter, AddressFamily family) {
  const std::vector<Interface> all = TRY(local_interfaces());
  std::vector<Interface> chosen;
  for (const Interface& interface : all) {
    if (family != AddressFamily::kAny && interface.address.family() != family) continue;
    if (interface_matches(filter, interface)) chosen.push_back(interface);
  }
  if (chosen.empty()) {
    std::string list;
    for (const Interface& interface : all)
      list += (list.empty() ? "" : ", ") + interface.label + " (" + format_host(interface.address) + ")";
    const char* kind = family == AddressFamily::kIpv4 ? "IPv4 " : family == AddressFamily::kIpv6 ? "IPv6 " : "";
    return Error{Code::kInvalidArgument, "no network interface with an " + std::string(kind) + "address matches '" +
                                             std::string(filter) + "'; there are: " + (list.empty() ? "none" : list)};
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Interface& a, const Interface& b) { return undesirability(a) < undesirability(b); });
  return chosen;
}

}  // namespace trestle
