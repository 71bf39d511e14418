// What hwloc adds to the kernel's files about GPUs: the NUMA node of GPUs for which the kernel names only the near
// processors. Internal to src/machine. Values; any thread.
#pragma once

#include <string>
#include <vector>

namespace trestle {

struct PciHint {
  std::string pci;     // "0000:3b:00.0"
  int numa_node = -1;  // -1: not known, or several
  bool operator==(const PciHint&) const = default;
};

// NVIDIA's devices as hwloc knows them; none where the library was built without hwloc. `xml`: a file that hwloc has
// written, which stands for the machine; "": this machine.
std::vector<PciHint> hints_from_hwloc(const std::string& xml = "");

}  // namespace trestle
