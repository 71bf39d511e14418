// DevicePlace: the device of an engine: where its work goes, and where memory for its operations comes from.
//
// Owned by the engine, from its creation to its end. An engine has all members of it or none; only the outboxes, the
// board and the shares may be missing where the others are there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/work/device_board.h"
#include "engine/work/driver_calls.h"
#include "engine/work/host_shares.h"
#include "engine/work/work_queue.h"
#include "memory/memory_source.h"
#include "memory/outbox.h"
#include "memory/region.h"

namespace trestle {

struct DevicePlace {
  // These end last, because work may use them until it is done: memory of peers, and the outboxes (nullptr: there is no
  // path to another process).
  std::vector<std::shared_ptr<const void>> held;
  std::shared_ptr<Outbox> outbox;
  std::shared_ptr<Outbox> host_outbox;  // in host memory that devices of other processes read; or nullptr
  uint64_t host_outbox_from = 0;        // whole messages of fewer bytes do not go there
  int32_t device = kHostMemory;         // Region::device of its memory; kHostMemory: the engine has no device
  // Does all work on the device's memory, and copies between it and pinned memory. Its work has no user-defined
  // functions, and views of transports only from ranks with a path of any kind (memory/peer_paths.h).
  std::unique_ptr<WorkQueue> work;
  std::shared_ptr<DriverCalls> calls;    // those of the queue and of the board, while they are driven
  std::unique_ptr<MemorySource> memory;  // of the device: for partial results
  std::unique_ptr<MemorySource> pinned;  // of the host, where the device reads and writes it: for bounce buffers
  std::unique_ptr<DeviceBoard> board;    // nullptr: small collectives run as the others
  std::unique_ptr<HostShares> shares;    // nullptr: no path shares its messages with host memory
};

}  // namespace trestle
