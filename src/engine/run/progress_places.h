// ProgressPlaces: how many helper threads a process may have, why, and on which processors each of them runs; and which
// of them drives a rank.
//
// Values and pure functions; any thread. The places are chosen once per process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trestle {

struct ProgressPlaces {
  // By helper thread, at least one: its processors, ascending. Empty: the thread is not bound.
  std::vector<std::vector<int>> processors = {{}};
  std::string why;  // for the log
  // By helper thread: the NUMA nodes of these processors, ascending. Empty: they were not chosen by node. Where there
  // is one helper for one node, it is not bound.
  std::vector<std::vector<int>> nodes = {};
};

// wanted: so many threads; 0: one for each NUMA node that has processors of the mask (as usable_cpu_mask() returns
// it), at most eight. The nodes are read below `folder` ("/sys/devices/system/node").
ProgressPlaces choose_progress_places(int64_t wanted, const std::string& folder, const std::vector<uint64_t>& mask);

// The place of a rank, when it is made.
struct RankSite {
  int processor = -1;            // where the thread that makes it runs
  std::vector<int> usable = {};  // where that thread may run, ascending; empty: not known
  int rails_node = -1;           // the NUMA node of the rank's rails; -1: not known
};

struct HelperChoice {
  std::optional<size_t> helper;  // none: any will do
  std::string why;               // for the log: what the rails had to do with it; "": nothing
};

// A rank that is bound to the processors of one helper gets that helper. Of the others, those whose rails are at a node
// of the process get the helper of that node, because it moves data between the rails and memory. The rest get the
// helper of the processor that makes them, if there is one.
HelperChoice choose_helper(const ProgressPlaces& places, const RankSite& site);

}  // namespace trestle
