// The peer paths of a rank within its process (memory/peer_paths.h), found while its communicator is made. For those to
// other processes, see comm/setup/process_paths.h.
#pragma once

#include <span>

#include "base/result.h"
#include "memory/peer_paths.h"

namespace trestle {

// device: of the rank. devices: by rank, the devices of those whose messages reach this rank as views of memory of this
// process, itself among them; -1: of others. All of them have been opened. Slow where a device meets another one for
// the first time. All ranks of a process find the same paths, because what was found once holds for the process. A path
// that leads nowhere is left out, and the log says why. Errors: the driver's.
Result<PeerPaths> find_peer_paths(int device, std::span<const int> devices);

}  // namespace trestle
