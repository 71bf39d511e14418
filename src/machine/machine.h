// Machine: what this host has, for people and for plans: packages, NUMA nodes, the processors that this process may
// use, network interfaces with speed and place, which of them are rails, and GPUs.
//
// A value; read at each call; any thread. Packages, cores and nodes are read by machine/layout.h. Interfaces are
// always the kernel's, because hwloc knows neither their state nor their addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "base/result.h"
#include "machine/gpu/gpu.h"
#include "machine/layout.h"
#include "transport/rails/choice.h"
#include "transport/rails/inventory.h"

namespace trestle {

struct MachinePackage {
  int number = 0;               // -1: the machine does not tell which packages it has
  size_t cores = 0;             // 0: not known
  std::vector<int> processors;  // online, ascending
  std::vector<int> usable;      // of these, by this process, ascending
};

struct MachineNode {
  int number = 0;
  int package = -1;             // that of its processors; -1: it has none, or those of several packages
  uint64_t memory_bytes = 0;    // 0: not known
  std::vector<int> processors;  // online, ascending; none: it has only memory
  std::vector<int> usable;
};

struct MachineInterface {
  HostInterface interface;
  bool rail = false;
  std::string fabric = {};                  // rail: the subnet that tells it from others, as docs/rails.md says
  uint64_t rate_bps = 0;                    // as stated in TRESTLE_RAILS, else as the kernel knows it; 0: not known
  std::string reason = {};                  // why it is no rail; "": it is one, or there is none at all
  std::vector<std::string> addresses = {};  // "10.0.0.1/24", in the kernel's order
  const char* state() const;                // "up", "down", "no carrier"
};

struct Machine {
  std::string hostname;
  std::string boot_id;                       // "": not known
  std::string source;                        // of the processors: "hwloc 2.9.0", "the kernel's files"
  std::vector<MachinePackage> packages;      // at least one, by number
  std::vector<MachineNode> nodes;            // at least one, by number
  std::vector<int> processors;               // online, ascending
  std::vector<int> usable;                   // by the affinity mask, which respects a cgroup's cpuset; ascending
  std::vector<MachineInterface> interfaces;  // in the kernel's order
  std::string no_rails = {};                 // why there is no rail at all; "": there is one
  HostGpus gpus = {};
};

// What TRESTLE_RAILS, TRESTLE_SOCKET_IFNAME and TRESTLE_SOCKET_FAMILY say about the rails of this host.
Result<RailRequest> rail_request(const Config& config);

// `mask`: the processors that may be used, as usable_cpu_mask() returns it; if the host does not report its processors,
// these are all. `nvml`: the library that tells of GPUs (gpu/gpu.h); "": none. Errors: the interfaces cannot be listed;
// kInvalidArgument: a named interface does not exist, with those that do. A host without any rail is no error.
Result<Machine> read_machine(const RailRequest& request, const std::vector<uint64_t>& mask,
                             const KernelFiles& files = {}, const std::string& nvml = kNvmlLibrary);

// The pure part of read_machine(). The name, the boot id and the GPUs are left empty.
Result<Machine> make_machine(const MachineLayout& layout, const std::vector<int>& usable,
                             const std::vector<HostInterface>& interfaces, const RailRequest& request);

// The rails of a dimension: those that `named` ("" : as the request says) leaves, in the grammar of TRESTLE_RAILS.
// Errors: a name is no interface of this host, or none of them can be used.
Result<std::vector<LocalRail>> rails_of(const Machine& machine, const RailRequest& request, const std::string& named);

}  // namespace trestle
