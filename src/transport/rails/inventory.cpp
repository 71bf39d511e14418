#include "transport/rails/inventory.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/files/kernel_file.h"
#include "base/files/listing.h"
#include "transport/rails/pci.h"

namespace trestle {
namespace {

bool exists(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0;
}

// The last part of what a link points to; "": there is no link.
std::string link_target(const std::string& path) {
  std::array<char, 4096> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length <= 0) return {};
  const std::string text(target.data(), static_cast<size_t>(length));
  return text.substr(text.rfind('/') + 1);
}

bool is_tunnel(const std::string& folder) {
  static constexpr int64_t kIp6Gre = 823;  // ARPHRD_IP6GRE, which only the kernel's own header has
  if (exists(folder + "/tun_flags")) return true;
  switch (number_in(folder + "/type", -1)) {
    case ARPHRD_TUNNEL:
    case ARPHRD_TUNNEL6:
    case ARPHRD_SIT:
    case ARPHRD_IPGRE:
    case kIp6Gre:
    case ARPHRD_NONE:  // WireGuard, and tun without Ethernet
      return true;
    default:
      return false;
  }
}

// Mbit/s. Old kernels write -1 as 4294967295.
uint64_t speed_bps(const std::string& folder) {
  static constexpr int64_t kMostMbps = 1'000'000'000;
  const int64_t speed_mbps = number_in(folder + "/speed", -1);
  return speed_mbps > 0 && speed_mbps <= kMostMbps ? static_cast<uint64_t>(speed_mbps) * 1'000'000 : 0;
}

int prefix_of(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  std::array<uint8_t, 16> bytes{};
  if (mask->sa_family == AF_INET6)
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr, 16);
  else
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(mask)->sin_addr, 4);
  int bits = 0;
  for (const uint8_t byte : bytes) bits += std::popcount(byte);
  return bits;
}

void add_address(HostInterface& interface, const ifaddrs& item) {
  const int family = item.ifa_addr == nullptr ? AF_UNSPEC : item.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return;
  InterfaceAddress found;
  found.address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&found.address.storage, item.ifa_addr, found.address.length);
  found.prefix = prefix_of(item.ifa_netmask);
  if (interface.name != item.ifa_name) found.label = item.ifa_name;
  interface.addresses.push_back(found);
}

}  // namespace

InterfaceFacts read_facts(const std::string& sysfs, const std::string& name, uint32_t index) {
  const std::string all = sysfs + "/class/net/";
  const std::string folder = all + name;
  InterfaceFacts facts;
  if (!exists(folder) || (index != 0 && number_in(folder + "/ifindex", -1) != index)) return facts;
  facts.hardware = exists(folder + "/device");
  facts.bridge = exists(folder + "/bridge");
  const auto ports = entries_of(folder + "/brif");
  facts.hardware_port = ports.ok() && std::any_of(ports.value().begin(), ports.value().end(),
                                                  [&](const auto& port) { return exists(all + port + "/device"); });
  if (exists(folder + "/brport")) facts.bridge_of = link_target(folder + "/brport/bridge");
  facts.tunnel = is_tunnel(folder);
  if (!facts.hardware) return facts;
  facts.rate_bps = speed_bps(folder);
  const PciDevice pci = read_pci(folder + "/device");
  facts.numa_node = static_cast<int>(std::max<int64_t>(-1, number_in(folder + "/device/numa_node", pci.numa_node)));
  facts.pci = pci.address;
  facts.pci_bps = pci.rate_bps;
  return facts;
}

Result<std::vector<HostInterface>> read_interfaces(const std::string& sysfs) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return Error{Code::kSystemError, std::string("the network interfaces cannot be listed: ") + std::strerror(errno)};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<HostInterface> found;
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    // An alias ("eth0:1") is another address of its interface.
    std::string name = item->ifa_name;
    name.resize(std::min(name.find(':'), name.size()));
    auto interface = std::ranges::find(found, name, &HostInterface::name);
    if (interface == found.end()) {
      found.emplace_back().name = name;
      interface = found.end() - 1;
      interface->index = ::if_nametoindex(name.c_str());
    }
    interface->up = (item->ifa_flags & IFF_UP) != 0;
    interface->running = interface->up && (item->ifa_flags & IFF_RUNNING) != 0;
    interface->loopback = (item->ifa_flags & IFF_LOOPBACK) != 0;
    add_address(*interface, *item);
  }
  for (HostInterface& interface : found) interface.facts = read_facts(sysfs, interface.name, interface.index);
  return found;
}

std::string interface_fault(const std::string& interface, const SocketAddress& address) {
  const auto all = read_interfaces();
  if (!all.ok()) return {};
  const auto found = std::ranges::find(all.value(), interface, &HostInterface::name);
  const bool exists = found != all.value().end();
  if (exists && !found->up) return interface + " is down";
  if (exists && !found->running) return interface + " has no carrier";
  const auto is_it = [wanted = HostAddress(address)](const InterfaceAddress& one) { return wanted == one.address; };
  if (exists && std::ranges::any_of(found->addresses, is_it)) return {};
  return interface + " is gone, or its address has changed";
}

}  // namespace trestle
