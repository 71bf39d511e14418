// Wiring: from a joined bootstrap to transports, routes and the express board of one rank. Used once, while a
// communicator is made.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rank_names.h"
#include "comm/setup/calibration.h"
#include "comm/setup/routing.h"
#include "comm/setup/settings.h"
#include "engine/work/device_place.h"
#include "engine/work/work_queue.h"
#include "express/express.h"
#include "memory/peer_paths.h"
#include "memory/registrations.h"
#include "rendezvous/bootstrap.h"
#include "topology/device_topology.h"
#include "topology/topology.h"
#include "transport/shm/descriptor_exchange.h"
#include "transport/transport.h"

namespace trestle {

struct Wiring {
  Topology topology;
  Topology nominal;  // before anything measured came in
  CalibrationPlace calibration;
  std::optional<UsedCalibration> used;  // at rank 0, if one is used
  bool measure = false;         // link speeds are wanted, and nobody has measured them yet
  std::vector<RankInfo> infos;  // by rank
  PeerPaths peer_paths;
  DeviceLinks device_links;  // agreed; of no dimension: no rank has told of a device
  RankNames names;           // for sentences
  std::vector<std::unique_ptr<Transport>> transports;
  std::optional<Routing> routing;    // set by wire()
  std::vector<Transport*> router;    // by rank, this one included
  int32_t ranks_per_processor = 1;   // agreed (topology/topology.h)
  std::unique_ptr<Express> express;  // or nullptr
  std::unique_ptr<WorkQueue> work;   // or nullptr
  std::shared_ptr<MemRegistrations> memory = std::make_shared<MemRegistrations>();
};

// The queue of this rank's work on host memory. nullptr: the driving thread does the work. Weak: the library that is
// built for tests has another one.
Result<std::unique_ptr<WorkQueue>> make_work_queue(int32_t rank);
// Exchanges places, compares configurations, chooses the dimensions, makes the transports and exchanges their
// addresses. kin: the sockets that this communicator shares. device: of the settings, opened; gets the outbox.
Result<Wiring> wire(Bootstrap& bootstrap, const CommunicatorSettings& settings, const HostKin& kin, DevicePlace& device,
                    int64_t deadline_ns);
// Runs what waits for other ranks, while the control mesh is heard. A rank that is late is asked about over the mesh.
Status run_watched(Bootstrap& bootstrap, const std::function<Status(const ExchangeWatch&)>& run);

}  // namespace trestle
