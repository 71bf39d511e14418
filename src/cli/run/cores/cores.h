// The cores of this machine that this process may use: what its affinity mask and its cpuset leave.
//
// Read at each call, with hwloc where it was found when this was built, else from the kernel's files. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace trestle {

struct Core {
  int socket = 0;
  std::vector<int> processors;  // its hardware threads that may be used, at least one; the kernel's numbers, ascending
  bool operator==(const Core&) const = default;
};

// Neighbours in the list are neighbours on the machine. Errors: the machine does not tell which processors are a core.
Result<std::vector<Core>> usable_cores();

// From the kernel's files below `folder` ("/sys/devices/system/cpu"), of these processors; by socket, then by number.
Result<std::vector<Core>> cores_from_files(const std::string& folder, const std::vector<int>& processors);

// The processors of this process's affinity mask, ascending.
std::vector<int> usable_processors();

}  // namespace trestle
