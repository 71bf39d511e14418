#include "comm/device/device_peers.h"

#include <utility>
#include <vector>

#include "comm/device/opened_devices.h"

namespace trestle {

DevicePeers find_device_peers(int device, std::span<const int> devices) {
  DevicePeers peers;
  if (device < 0) return peers;
  std::vector<bool> with;
  with.reserve(devices.size());
  for (const int other : devices) {
    with.push_back(other >= 0 && OpenedDevices::process().reach_each_other(device, other));
    peers.to_other_devices |= with.back() && other != device;
  }
  peers.paths = PeerPaths(std::move(with));
  return peers;
}

}  // namespace trestle
