// The cores of this machine that this process may use, as its affinity mask and its cpuset allow.
//
// Read at each call: with hwloc if it was found at build time, else from the kernel's files. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace trestle {

struct Core {
  int socket = 0;
  // Its usable hardware threads, at least one, with the kernel's numbers, ascending.
  std::vector<int> processors;
  bool operator==(const Core&) const = default;
};

// Neighbours in the list are neighbours on the machine. Error: the machine does not tell which processors form a core.
Result<std::vector<Core>> usable_cores();

// From the kernel's files below `folder` ("/sys/devices/system/cpu"), for these processors; by socket, then by number.
Result<std::vector<Core>> cores_from_files(const std::string& folder, const std::vector<int>& processors);

// The processors of this process's affinity mask, ascending.
std::vector<int> usable_processors();

}  // namespace trestle
