// A topology of hwloc that is destroyed with its owner. Internal to src/machine/hwloc, which alone includes hwloc. One
// thread.
#pragma once

#include <hwloc.h>

#include <memory>

namespace trestle {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using OwnedTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

// Null: hwloc failed.
inline OwnedTopology new_topology() {
  hwloc_topology_t raw = nullptr;
  return OwnedTopology(hwloc_topology_init(&raw) == 0 ? raw : nullptr);
}

}  // namespace trestle
