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
  kPeers,      // a device reads memory of the other one
  kHost,       // through host memory
};

// "within one device", for the log.
const char* to_string(DeviceWay way);

// Of one dimension: of the pair of ranks whose way is the worst.
struct DeviceLink {
  DeviceWay way = DeviceWay::kHost;
  // One way, 10^6 bit/s. kOneDevice: what the device reads or writes of its own memory; kPeers: the link between two
  // devices; kHost: the link between a device and host memory, 0: it limits nothing.
  uint64_t mbps = 0;
  // Messages are copied into the sender's outbox first (memory/outbox.h). Not of kHost.
  bool outbox = false;
  bool operator==(const DeviceLink&) const = default;
};

// The worse of two: the worse way, and the lower speed of this way; by outboxes if one of them is.
DeviceLink worse(const DeviceLink& a, const DeviceLink& b);

struct DeviceLinks {
  std::vector<DeviceLink> by_dimension;  // a dimension that is not here counts as kHost, with no limit
  int32_t ranks_per_device = 1;          // on the device that most ranks use; they share its memory and its links
};

// Nominal speeds, 10^6 bit/s, one way, of GPUs of a compute capability (90: 9.0). A later or unknown one counts as the
// nearest that is known.
struct DeviceSpeeds {
  uint64_t memory_mbps = 0;  // for drivers that do not tell it
  uint64_t nvlink_mbps = 0;  // all links of a GPU together
  uint64_t pcie_mbps = 0;    // sixteen lanes
};
const DeviceSpeeds& nominal_speeds(int compute_capability);

// As memory/place.h has it for devices.
inline constexpr uint64_t kDeviceSegmentBytes = uint64_t{4} << 20;

// The topology for calls on device memory. host: that of calls on host memory.
Topology device_topology(const Topology& host, const DeviceLinks& links);

}  // namespace trestle
