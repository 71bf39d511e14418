// Rank 0's side of a named place: the rendezvous in its process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "rendezvous/meeting.h"

namespace trestle {

// Where rank 0 may listen, in the user's terms and as addresses.
struct ServedPlace {
  std::vector<SocketAddress> addresses;  // of the place's host; their ports do not count
  uint16_t port = 0;
  uint16_t ports = 1;     // the named one and those behind it
  bool loopback = false;  // listen only at the addresses; else at all of this host
  std::string variable;   // the variable that has the port
};

// Sets root.candidates, and root.hold or root.guest. The rendezvous of this process goes on, if there is one for the
// job; else one begins at the first free port. A port that another program holds, or the rendezvous of another job, is
// passed over with a line at INFO. If a rendezvous of this job holds it, which another process began, rank 0 asks there
// (root.guest), and is told that two jobs meet, unless that process forked this one.
// Errors: kSystemError when no port became free within 5 s, with who holds it.
Status serve_root(Root& root, const ServedPlace& place, const BootstrapConfig& config, const WaitLimit& limit);

}  // namespace trestle
