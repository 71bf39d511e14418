// Built if hwloc was found. hwloc also knows caches and memory, so its neighbours are better.
#include <hwloc.h>

#include <algorithm>
#include <memory>

#include "cli/run/cores/cores.h"

namespace trestle {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using OwnedTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

Error unknown() {
  return Error{Code::kSystemError, "hwloc does not tell which processors are a core of this machine"};
}

Result<OwnedTopology> load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return unknown();
  OwnedTopology topology(raw);
  if (hwloc_topology_load(raw) != 0 || hwloc_topology_is_thissystem(raw) == 0) return unknown();
  return topology;
}

int socket_of(hwloc_topology_t topology, hwloc_obj_t core) {
  const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, core);
  return package == nullptr ? 0 : static_cast<int>(package->logical_index);
}

}  // namespace

Result<std::vector<Core>> usable_cores() {
  const OwnedTopology topology = TRY(load_topology());
  const std::vector<int> usable = usable_processors();
  std::vector<Core> cores;
  hwloc_obj_t at = nullptr;
  while ((at = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, at)) != nullptr) {
    Core core{socket_of(topology.get(), at), {}};
    for (const int processor : usable) {
      if (hwloc_bitmap_isset(at->cpuset, static_cast<unsigned>(processor)) != 0) core.processors.push_back(processor);
    }
    if (!core.processors.empty()) cores.push_back(std::move(core));
  }
  if (cores.empty()) return unknown();
  return cores;
}

}  // namespace trestle
