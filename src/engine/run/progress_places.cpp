#include "engine/run/progress_places.h"

#include <algorithm>

#include "base/cpu/numa.h"

namespace trestle {

namespace {

constexpr size_t kMostByNode = 8;

}  // namespace

ProgressPlaces choose_progress_places(int64_t wanted, const std::string& folder, const std::vector<uint64_t>& mask) {
  if (wanted > 0) return {std::vector<std::vector<int>>(static_cast<size_t>(wanted)), "TRESTLE_PROGRESS_THREADS"};
  const auto nodes = numa_nodes(folder, mask);
  if (!nodes.ok()) return {{{}}, "the NUMA nodes are not known: " + nodes.error().message};
  const size_t count = nodes.value().size();
  // A helper that is the only one runs wherever the process may.
  if (count <= 1) return {{{}}, count == 1 ? "the process runs on one NUMA node" : "no NUMA node is known"};
  const size_t threads = std::min(count, kMostByNode);
  ProgressPlaces places{std::vector<std::vector<int>>(threads), "one for each NUMA node"};
  if (threads < count) places.why = "they share " + std::to_string(count) + " NUMA nodes";
  for (size_t i = 0; i < count; ++i) {
    std::vector<int>& processors = places.processors[i * threads / count];
    processors.insert(processors.end(), nodes.value()[i].processors.begin(), nodes.value()[i].processors.end());
    std::sort(processors.begin(), processors.end());
  }
  return places;
}

}  // namespace trestle
