// Membership: this rank's place in a communicator, the other ranks, and how to reach them: settings, names, keys,
// dimensions and routes.
//
// Owned by the communicator, which outlives every user. Immutable but for set_measured(), which is called at most once,
// before the communicator is given to its user. After that any thread may read everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/job_id.h"
#include "base/rank_names.h"
#include "comm/setup/routing.h"
#include "comm/setup/settings.h"
#include "comm/setup/wiring.h"
#include "memory/place.h"
#include "rendezvous/bootstrap.h"
#include "topology/device_topology.h"
#include "topology/topology.h"
#include "transport/shm/host_sockets.h"
#include "transport/socket/socket.h"

namespace trestle {

class Membership {
 public:
  // Takes the topologies, the names, the routing and the paths between devices out of the wiring.
  Membership(const Bootstrap& bootstrap, const CommunicatorSettings& settings, Wiring& wiring, HostKin kin);
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  int32_t rank() const { return rank_; }
  int32_t ranks() const { return ranks_; }
  int32_t ranks_per_processor() const { return ranks_per_processor_; }
  const CommunicatorSettings& settings() const { return settings_; }
  const std::string& name() const { return name_; }  // of the communicator, for sentences
  const JobId& job() const { return job_; }
  // The sockets that all communicators of this rank share that go back to one root by splits.
  const HostKin& kin() const { return kin_; }
  bool is_kin(const Membership& other) const { return other.kin_.sockets == kin_.sockets; }
  const std::vector<std::byte>& secret() const { return secret_; }
  const HostAddress& local_ip() const { return local_ip_; }

  // "rank 3 (host a, pid 12)", for sentences.
  const RankNames& names() const { return names_; }
  const std::string& name_of(int32_t rank) const { return names_[static_cast<size_t>(rank)]; }
  const std::string& own_name() const { return name_of(rank_); }

  // With measured link speeds, if there are any.
  const Topology& topology() const { return topology_; }
  const Routing& routing() const { return routing_; }

  // For calls on memory of that place. `nominal`: as it was before anything measured came in, and whatever devices the
  // ranks have: so it is the same on all machines.
  Topology topology_for(MemoryPlace place, bool nominal) const;

  // The ranks whose device memory this rank's device reads where it lies.
  const PeerPaths& peer_paths() const { return peer_paths_; }

  // Uses measured link speeds from now on, where none were configured. No other thread may read the topology meanwhile.
  void set_measured(const Topology& measured);

  // Logs the dimensions at INFO. has_board: small collectives use a board of memory.
  void log_topology(bool has_board) const;

 private:
  const int32_t rank_;
  const int32_t ranks_;
  const int32_t ranks_per_processor_;
  const CommunicatorSettings settings_;
  const std::string name_;
  const JobId job_;
  const HostKin kin_;
  const std::vector<std::byte> secret_;
  const HostAddress local_ip_;
  Topology topology_;
  const Topology nominal_;
  const RankNames names_;
  const Routing routing_;
  const PeerPaths peer_paths_;
  const DeviceLinks device_links_;
};

}  // namespace trestle
