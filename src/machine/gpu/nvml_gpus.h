// What NVML says of the GPUs of this host. Values; any thread. Others ask through nvlink_pairs.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/gpu/nvml.h"

namespace trestle {

// The other end of an NVLink that is up.
struct NvmlLink {
  std::string remote_pci = {};  // "": not known
  bool to_switch = false;       // an NVSwitch is there
  bool operator==(const NvmlLink&) const = default;
};

struct NvmlGpu {
  std::string pci;  // "0000:3b:00.0"
  std::string name = {};
  std::string uuid = {};
  uint64_t memory_bytes = 0;  // 0: not known
  std::vector<NvmlLink> links = {};
  uint64_t link_bps = 0;                  // of each link, one way; 0: not known
  std::string links_unknown = {};         // why its links are not known; "": they are
  std::vector<std::string> cut_off = {};  // GPUs behind switches that no NVLink leads to, as NVML says
};

struct NvmlReading {
  std::vector<NvmlGpu> gpus;       // in NVML's order
  std::string failure = {};        // why there is none; "": NVML has reported them
  std::vector<std::string> notes;  // sentences about GPUs that are left out
};

// Loads the library, asks, and shuts it down.
NvmlReading read_nvml(const std::string& library);

// Asks a library whose table is already filled in. `library`: its name, for sentences.
NvmlReading read_nvml(const Nvml& nvml, const std::string& library);

}  // namespace trestle
