// MachineLayout: which processors of this machine form a core, a package and a NUMA node. Two sources tell: hwloc, if
// it was found at build time, and the kernel's files. Both describe a machine alike; hwloc also knows which cores are
// close to each other, by their caches.
//
// A value; read at each call; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace trestle {

// Where the kernel's files are. Tests invent some.
struct KernelFiles {
  std::string sysfs = "/sys";
  std::string proc = "/proc";
  bool operator==(const KernelFiles&) const = default;
};

struct LayoutProcessor {
  int number = 0;    // the kernel's
  int package = -1;  // the kernel's number of the socket; -1: not known
  int core = -1;     // the lowest number of the core's processors; -1: not known
  int node = -1;     // its NUMA node; -1: none
  bool operator==(const LayoutProcessor&) const = default;
};

struct LayoutNode {
  int number = 0;
  uint64_t memory_bytes = 0;  // 0: not known
  bool operator==(const LayoutNode&) const = default;
};

struct MachineLayout {
  // Those that are online, whether this process may use them or not. Neighbours in the list are neighbours on the
  // machine.
  std::vector<LayoutProcessor> processors;
  std::vector<LayoutNode> nodes;  // by number; at least one: node 0 has all of a machine without NUMA
  std::string source;             // for people: "hwloc 2.9.0", "the kernel's files"
};

// With hwloc if it was built in and describes this machine, else from the files. hwloc reads only the machine's own
// files, so it is not asked if `files` names others. Error: neither tells which processors there are.
Result<MachineLayout> read_layout(const KernelFiles& files = {});

// The two sources. The first fails where the library was built without hwloc, or where hwloc was told to describe
// another machine. The second takes what is missing in the files as not known.
Result<MachineLayout> layout_from_hwloc();
Result<MachineLayout> layout_from_files(const KernelFiles& files = {});

}  // namespace trestle
