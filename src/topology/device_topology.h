// The dimensions as calls on memory of devices meet them: what a step costs there, by the way that messages take.
//
// Pure functions; any thread. All ranks of a communicator must give the same links, so that they choose the same
// schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace trestle {

// How messages between memory of devices travel (docs/cuda.md), the best way first.
enum class DeviceWay : uint8_t {
  kOneDevice,  // both ranks use one device, which reads all of its memory
  kPeers,      // a device reads the other one's memory
  kHost,       // through host memory
};

// "within one device", for the log.
const char* to_string(DeviceWay way);

// Of one dimension: of the pair of ranks whose way is the worst.
struct DeviceLink {
  DeviceWay way = DeviceWay::kHost;
  // One way, 10^6 bit/s. kOneDevice: what the device reads or writes of its own memory; kPeers: the link between two
  // devices; kHost: the link between a device and host memory.
  uint64_t mbps = 0;
  bool operator==(const DeviceLink&) const = default;
};

// The worse of two: the worse way, and the lower speed of this way.
DeviceLink worse(const DeviceLink& a, const DeviceLink& b);

// Nominal speeds, 10^6 bit/s, one way, of GPUs of a compute capability (90: 9.0). A later or unknown one counts as the
// nearest that is known.
struct DeviceSpeeds {
  uint64_t memory_mbps = 0;
  uint64_t nvlink_mbps = 0;  // all links of a GPU together
  uint64_t pcie_mbps = 0;    // sixteen lanes
};
const DeviceSpeeds& nominal_speeds(int compute_capability);

// The topology for calls on device memory. host: that of calls on host memory. links: by dimension; a dimension that
// they lack counts as kHost at any speed.
Topology device_topology(const Topology& host, const std::vector<DeviceLink>& links);

}  // namespace trestle
