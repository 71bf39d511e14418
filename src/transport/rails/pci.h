// PCI devices as sysfs describes them, such as the one behind a network interface. Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trestle {

struct PciDevice {
  std::string address;    // "0000:3b:00.0"; "": there is none
  int numa_node = -1;     // -1: not known
  uint64_t rate_bps = 0;  // what its lanes carry, one way, without the bits of the line code; 0: not known
  bool operator==(const PciDevice&) const = default;
};

// The device that `device` ("/sys/class/net/eth0/device") points to, or the one that it is a part of: a virtio device
// is a part of its PCI device.
PciDevice read_pci(const std::string& device);

// The addresses of the bridges from the root of PCI down to that device, and its own last; empty: there is none. A port
// of a switch is a bridge.
std::vector<std::string> pci_path(const std::string& device);

// "16.0 GT/s PCIe" and 8 lanes are 126 Gb/s; 0: the text says no speed.
uint64_t pci_rate_bps(std::string_view speed, int64_t lanes);

}  // namespace trestle
