#include "comm/device/find_peer_paths.h"

#include <utility>
#include <vector>

#include "comm/device/opened_devices.h"

namespace trestle {

namespace {

Result<PeerPath> path_between(int device, int other) {
  if (other < 0) return PeerPath::kNone;
  if (other == device) return PeerPath::kSameDevice;
  return TRY(OpenedDevices::process().reach_each_other(device, other)) ? PeerPath::kOtherDevice : PeerPath::kNone;
}

}  // namespace

Result<PeerPaths> find_peer_paths(int device, std::span<const int> devices) {
  std::vector<PeerPath> paths;
  paths.reserve(devices.size());
  for (const int other : devices) paths.push_back(TRY(path_between(device, other)));
  return PeerPaths(std::move(paths));
}

}  // namespace trestle
