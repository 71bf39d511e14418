// ProgressPlaces: how many helper threads a process may have, why, and on which processors each of them runs.
//
// A value; chosen once per process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trestle {

struct ProgressPlaces {
  // By helper thread, at least one: its processors, ascending. Empty: the thread is not bound.
  std::vector<std::vector<int>> processors = {{}};
  std::string why;  // for the log
};

// wanted: so many threads; 0: one for each NUMA node that has processors of the mask (as usable_cpu_mask() returns
// it), at most eight. The nodes are read below `folder` ("/sys/devices/system/node").
ProgressPlaces choose_progress_places(int64_t wanted, const std::string& folder, const std::vector<uint64_t>& mask);

}  // namespace trestle
