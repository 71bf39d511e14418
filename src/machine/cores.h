// The cores of this machine that this process may use, as its affinity mask and its cpuset allow.
//
// Read at each call; any thread.
#pragma once

#include <vector>

#include "base/result.h"
#include "machine/layout.h"

namespace trestle {

struct Core {
  int socket = 0;
  // Its usable hardware threads, at least one, with the kernel's numbers, ascending.
  std::vector<int> processors;
  bool operator==(const Core&) const = default;
};

// Neighbours in the list are neighbours on the machine. Error: the machine does not tell which processors form a core.
Result<std::vector<Core>> usable_cores();

// The cores of a layout. usable: the processors that may be used, ascending.
Result<std::vector<Core>> cores_of(const MachineLayout& layout, const std::vector<int>& usable);

// The processors of this process's affinity mask, ascending.
std::vector<int> usable_processors();

}  // namespace trestle
