// Neighbours: the authenticated connections of a rank to the ranks r + 2^k (made) and r - 2^k (accepted).
//
// A function of join(), on its thread. It blocks until all connections exist or the limit is reached. Strangers on the
// listening port are refused, logged once per address and reason, and bounded in number and time.
#pragma once

#include <vector>

#include "base/result.h"
#include "control_mesh/control_mesh.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/meeting.h"

namespace trestle {

struct Neighbours {
  std::vector<ControlConnection> out;  // out[k]: rank + 2^k
  std::vector<ControlConnection> in;   // in[k]: rank - 2^k
};

Result<Neighbours> connect_neighbours(const BootstrapConfig& config, const Meeting& meeting, const WaitLimit& limit);

}  // namespace trestle
