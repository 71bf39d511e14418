// GPUs as the kernel's files describe them. Internal to src/machine/gpu. Values; any thread.
#pragma once

#include <string>
#include <vector>

#include "machine/gpu/gpu.h"

namespace trestle {

// All of NVIDIA's, by PCI address, without their NVLinks, memory and interfaces. The driver's files below /proc tell
// the name and the UUID, if the driver is loaded. Virtual functions are left out beside their GPU.
std::vector<Gpu> gpus_from_files(const KernelFiles& files);

// What the kernel knows of a GPU at this address; only the address if it knows none.
Gpu gpu_from_files(const KernelFiles& files, const std::string& pci);

// "device 10de:2330", of vendor and device; "": the files do not say.
std::string numeric_name(const KernelFiles& files, const std::string& pci);

// Orders PCI addresses as numbers. The first number may have more than four digits.
bool pci_before(const std::string& a, const std::string& b);

}  // namespace trestle
