// The network interfaces nearest to a GPU. Internal to src/machine/gpu. Any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "machine/gpu/gpu.h"

namespace trestle {

// Where a device of PCI is.
struct PciPlace {
  std::vector<std::string> path = {};  // as pci_path() has it: bridges, then the device; empty: not known
  int numa_node = -1;                  // -1: not known
};

struct NicPlace {
  std::string name;
  PciPlace place = {};
};

// Of two devices: how near, and the number of bridges that both are below. Of equal distances the one with more common
// bridges is nearer, as a switch may hang below another one.
struct PciDistance {
  NicDistance distance = NicDistance::kUnknown;
  size_t common = 0;
};
PciDistance distance_of(const PciPlace& gpu, const PciPlace& nic);

// Fills in `nics` and `nic_distance`.
void find_nearest(const PciPlace& place, std::span<const NicPlace> nics, Gpu& gpu);

}  // namespace trestle
