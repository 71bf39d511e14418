// HostGpus: the GPUs of this host, what joins them, and which network interface is near each. For people and for plans:
// nothing here opens a GPU. Only NVIDIA's are known.
//
// A GPU is named by its PCI address and its UUID. CUDA counts GPUs in an order of its own, which CUDA_VISIBLE_DEVICES
// and CUDA_DEVICE_ORDER change, so there are no numbers.
//
// Values; read at each call; any thread. Three sources tell: the kernel's files, hwloc if it was built in, and NVML,
// which is loaded at run time (gpu/nvml.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "machine/layout.h"
#include "transport/rails/inventory.h"

namespace trestle {

// How near a network interface is to a GPU, nearest first.
enum class NicDistance : uint8_t {
  kSwitch,     // below the same bridge, which hangs below a root port: a PCIe switch
  kRootPort,   // below the same root port
  kNode,       // at the same NUMA node
  kElsewhere,  // at another NUMA node
  kUnknown,    // nothing in common is known
};

struct Gpu {
  std::string pci;            // "0000:3b:00.0"
  std::string name = {};      // "NVIDIA H100 80GB HBM3"; "": not known
  std::string uuid = {};      // "GPU-2d0e5a53-..."; "": not known
  uint64_t memory_bytes = 0;  // 0: not known
  int numa_node = -1;         // -1: not known
  uint64_t pci_bps = 0;       // what its lanes carry, one way, when it is awake; 0: not known
  int nvlinks = -1;           // those that are up; -1: not known
  uint64_t nvlink_bps = 0;    // of each of them, one way, including the line code; 0: not known
  // The nearest interfaces of hardware: all that are equally near, in the kernel's order. Empty: the host has none.
  std::vector<std::string> nics = {};
  NicDistance nic_distance = NicDistance::kUnknown;
  bool operator==(const Gpu&) const = default;
};

// Two GPUs that NVLinks join.
struct GpuLink {
  std::string a;  // PCI addresses; a stands before b in the list of GPUs
  std::string b;
  int nvlinks = 0;              // between the two; through_switch: of the GPU that has fewer links to switches
  uint64_t rate_bps = 0;        // of all of these, one way; 0: not known
  bool through_switch = false;  // through NVSwitches, which join other GPUs too
  bool operator==(const GpuLink&) const = default;
};

struct HostGpus {
  std::vector<Gpu> list;           // by PCI address
  std::vector<GpuLink> links;      // pairs without a link are left out
  std::vector<std::string> notes;  // sentences about what is not known, and why
  bool operator==(const HostGpus&) const = default;
};

// NVML's library as the driver installs it.
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// `nvml`: the library to load; "": none. `interfaces`: those of the host; `nodes`: its NUMA nodes, at least one. hwloc
// knows only this machine, so it is not asked about other files. No errors: `notes` says what is not known. A host
// without GPUs has only the notes about GPUs that NVML left out.
HostGpus read_gpus(const KernelFiles& files, const std::string& nvml, std::span<const HostInterface> interfaces,
                   std::span<const LayoutNode> nodes);

}  // namespace trestle
