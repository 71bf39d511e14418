// DevicePeers: the ranks of a communicator with which a rank has peer paths (memory/peer_paths.h).
#pragma once

#include <cstdint>
#include <span>

#include "memory/peer_paths.h"

namespace trestle {

struct DevicePeers {
  PeerPaths paths;
  bool to_other_devices = false;  // one of them at least leads to another device than the rank's own
};

// device: of the rank, which has been opened; -1: it has none, and so no paths. devices: by rank, the devices of those
// whose messages reach this rank as views of memory of this process, itself among them; -1: of others. Slow where a
// device meets another one for the first time. All ranks of a process find the same paths, because what was found once
// holds for the process. A path that leads nowhere is left out, and the log says why.
DevicePeers find_device_peers(int device, std::span<const int> devices);

}  // namespace trestle
