// The network interfaces of this host, as the kernel describes them. Reading only: which of them are rails is judged in
// choice.h.
//
// Values; any thread. Nothing here waits for the network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/socket/socket.h"

namespace trestle {

struct InterfaceAddress {
  SocketAddress address;   // port 0
  int prefix = 0;          // bits of the network
  std::string label = {};  // the kernel's name of this address: "eth0:1" if it is an alias; "": its interface's name
};

// What sysfs says of an interface. The defaults are what is known where it says nothing.
struct InterfaceFacts {
  bool hardware = false;       // a device is behind it: a card, or one that a virtual machine takes for a card
  bool bridge = false;         // connects its ports
  bool hardware_port = false;  // bridge: one of the ports is hardware, so it leads out of this host
  std::string bridge_of = {};  // the bridge that it is a port of; "": none
  bool tunnel = false;         // tun, tap, GRE, WireGuard and the like
  uint64_t rate_bps = 0;       // 0: not known. The claims of interfaces without hardware do not count
  int numa_node = -1;          // -1: not known
  std::string pci = {};        // the address of its PCI device: "0000:3b:00.0"; "": it has none
  uint64_t pci_bps = 0;        // what the lanes of that device carry, one way; 0: not known
  bool operator==(const InterfaceFacts&) const = default;
};

struct HostInterface {
  std::string name;
  uint32_t index = 0;
  std::vector<InterfaceAddress> addresses = {};  // in the kernel's order
  bool up = false;
  bool running = false;  // up, and has a carrier
  bool loopback = false;
  InterfaceFacts facts = {};
};

// All interfaces of this network namespace, those without an address and those that are down too, in the kernel's
// order. `sysfs`: where sysfs is mounted. It may be that of another namespace, so what it says of an interface with
// another index is left out.
Result<std::vector<HostInterface>> read_interfaces(const std::string& sysfs = "/sys");

// Why nothing can leave from this address of the interface: "eth1 is down"; "": it can, as far as is known.
std::string interface_fault(const std::string& interface, const SocketAddress& address);

// Of one interface. `index`: as the kernel numbers it; 0: any.
InterfaceFacts read_facts(const std::string& sysfs, const std::string& name, uint32_t index = 0);

}  // namespace trestle
