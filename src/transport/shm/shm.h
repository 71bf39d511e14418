// The shared-memory transport: messages between ranks of one host, as processes or as threads of one process.
//
// See lane.h for how data moves, host_sockets.h for how ranks meet, sender.h for which message goes which way. Sends from
// mem_alloc memory are not copied: the receiver reads them in place (ShmTransportOptions::map_memory). Nor are messages
// in the outbox of a device, which the receiver's device reads (Transport::set_device_path). Memory: none until a pair
// talks. Then each direction of a pair has a lane of about 140 KiB (44 KiB beyond 16 ranks), and from the first long
// message outside mem_alloc memory on also a data area of 128 KiB to 1 MiB (lane.h: lane_shape).
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "transport/shm/host_sockets.h"
#include "transport/transport.h"

namespace trestle {

class MemRegistrations;

struct ShmTransportOptions {
  bool map_memory = true;                           // TRESTLE_SHM_MAP
  std::shared_ptr<MemRegistrations> registrations;  // of the communicator; null: none can be
  HostKin kin;                                      // empty: the communicator is a root
  std::string carrier;                              // of the communicator's carriers, this one
};

// Whether the system lets this process make memory and sockets for other processes of this host. kSystemError: the end
// of a sentence about it, with the call that is refused: "cannot make 4096 bytes of shared memory: fallocate: ...".
Status shared_memory_probe();
// shared_memory_probe(); kInvalidUsage without libsodium.
Status shm_probe();
Result<std::unique_ptr<Transport>> make_shm_transport(const EndpointConfig& config, const ShmTransportOptions& options);

}  // namespace trestle
