// The machine's NUMA nodes, lists of processors as the kernel writes them, and the binding of a thread to processors.
//
// Read from the kernel at each call; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace trestle {

struct NumaNode {
  int number = 0;
  std::vector<int> processors;  // ascending
  bool operator==(const NumaNode&) const = default;
};

// The processors of a mask as usable_cpu_mask() returns it (base/host.h), ascending.
std::vector<int> processors_of(const std::vector<uint64_t>& mask);

// All nodes, by number; those that have only memory have no processors. From the kernel's files below `folder`
// ("/sys/devices/system/node"). Error: the files do not tell.
Result<std::vector<NumaNode>> all_numa_nodes(const std::string& folder);
// The nodes that have processors of the mask, with these only.
Result<std::vector<NumaNode>> numa_nodes(const std::string& folder, const std::vector<uint64_t>& mask);

// "0-3,8" is 0 1 2 3 8, ascending and each once. An empty text has none.
Result<std::vector<int>> parse_processors(std::string_view text);
// The list that is the first line of a file, such as "/sys/devices/system/cpu/online". Errors name the file.
Result<std::vector<int>> read_processors(const std::string& path);
std::string processors_text(const std::vector<int>& processors);  // ascending ones; parse_processors reads it back

// Lets the calling thread run on these only. False: the system refuses, and nothing has changed.
bool bind_thread(const std::vector<int>& processors);

}  // namespace trestle
