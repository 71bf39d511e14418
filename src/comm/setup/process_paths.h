// ProcessPaths: the paths of a rank to devices of other processes of its host (memory/peer_paths.h), through outboxes
// in one place: memory of the devices, or host memory. Found while a communicator is made, in three steps between which
// the ranks exchange what they have: each offers its outbox; each opens those of its peers and proves that its device
// reads them; both ends of a path must have succeeded.
//
// Whatever fails on the way leaves a path out: the log says why, at INFO if the driver refuses, as a warning if a
// device read other bytes than were written or did not answer. Used by one thread, which drives all engines meanwhile
// (Progress::IdleDrive). Slow: the driver may wait for work of the device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/device/outbox_memory.h"
#include "engine/work/device_place.h"
#include "transport/transport.h"

namespace trestle {

class ProcessPaths {
 public:
  // device: of this rank, opened. peers: the ranks that a path may lead to. job: the communicator's, in hexadecimal.
  ProcessPaths(SharedPlace place, int device, int32_t rank, std::vector<int32_t> peers, std::string job);

  // For the peers; "": there are none, or no memory. by: as for OutboxStore::lend().
  std::string offer(SharedBy by);
  // What is to be passed to the peers; -1: nothing.
  int descriptor() const { return descriptor_; }
  // Opens what a peer has offered. descriptor: what it has passed, if anything. name: of the peer, for sentences.
  void open(int32_t peer, const std::string& offered, const UniqueFd& descriptor, const std::string& name);
  // For all ranks, once everything is opened.
  std::string opened() const;
  // said: by rank, what they have opened. Peers that did not open this rank's outbox are left out.
  void agree(const std::vector<std::string>& said);

  bool leads_to(int32_t peer) const { return opened_.contains(peer); }
  // Tells the transport to each peer, and gives the outbox and what was opened to the place, which outlives it.
  void hand_over(const std::vector<Transport*>& router, DevicePlace& place);

 private:
  Status try_offer(SharedBy by);
  Result<std::string> try_open(int32_t peer, const std::string& offered, const UniqueFd& descriptor);

  const SharedPlace place_;
  const int device_;
  const int32_t rank_;
  const std::vector<int32_t> peers_;
  const std::string job_;
  std::shared_ptr<Outbox> own_;
  int descriptor_ = -1;                                            // of own_
  std::string offered_;                                            // how peers find it
  const std::byte* probe_ = nullptr;                               // the room with what peers read
  std::map<int32_t, std::shared_ptr<const OpenedMemory>> opened_;  // by peer
};

}  // namespace trestle
