// SplitMeeting: how the ranks of a new communicator meet: over a handover if they all live in one process, over the
// sockets that they share if the parent has such between all of them, else at the addresses that they exchange over the
// parent.
//
// Used by one thread, while one split joins.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/membership/membership.h"
#include "comm/split/bootstrap_handover.h"
#include "comm/split/split_call.h"
#include "comm/split/split_letters.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/meeting.h"

namespace trestle {

struct SplitMeeting {
  // parts: of all ranks of the parent, by rank. The secret and the name of the new job are derived from the parent's,
  // so neither is sent, and only ranks of the parent can join.
  SplitMeeting(const Membership& parent, const SplitCall& call, const std::vector<SplitPart>& parts);

  int32_t size() const { return static_cast<int32_t>(members.size()); }
  // Opens the place where this rank waits for its neighbours.
  SplitAddress open(const HostAddress& ip);
  // The sockets of this rank, as the new communicator numbers its ranks.
  HostKin kin;
  // Takes the addresses of this rank's neighbours from those of all members, by rank.
  void set_addresses(const std::vector<std::string>& addresses);

  std::vector<int32_t> members;  // ranks of the parent, by their ranks in the new communicator; empty: no colour
  int32_t own_rank = 0;          // in the new communicator
  bool in_one_process = false;
  bool on_one_host = false;  // they share sockets
  BootstrapConfig config;
  Meeting meeting;
  std::unique_ptr<BootstrapHandover> handover;
  HostMeeting on_host;

 private:
  Status open_handover();
  Status open_streams();
  Status listen(const HostAddress& ip);
};

}  // namespace trestle
