// Neighbours: the authenticated connections of a rank to the ranks r + 2^k (made) and r - 2^k (accepted).
//
// A function of join(), on its thread. It blocks until all connections exist or the limit is reached. Strangers on the
// listening port are refused, logged once per address and reason, and bounded in number and time.
//
// A rail may be lost while this rank waits for its other neighbours. Where two ranks have several in common, their
// connection is then made anew over another one, as the mesh does it later (control_mesh/link_moves.h): the side that
// connects asks for the link, and the other one takes the new connection in place of the old one. No frame has come
// before all connections exist, so none is lost. The other rank may have all its connections already; then its mesh
// does the same.
#pragma once

#include <map>
#include <string>
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

// By rank: the meeting_text() of each neighbour.
std::map<int32_t, std::string> texts_of_neighbours(const Meeting& meeting, int32_t rank, int32_t nranks);

Result<Neighbours> connect_neighbours(const BootstrapConfig& config, const Meeting& meeting, const WaitLimit& limit);

}  // namespace trestle
