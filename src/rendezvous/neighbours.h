// Neighbours: the ranks r + 2^k and r - 2^k, with which a rank is connected before it has a communicator.
//
// A function of join(), on its thread. The control mesh makes the connections (control_mesh/link_moves.h). This
// function drives it until all exist, and looks at everything else that may end the wait: the meeting place, the limit,
// the abort flag.
#pragma once

#include <memory>

#include "base/result.h"
#include "control_mesh/control_mesh.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/meeting.h"

namespace trestle {

// A mesh in which every link has a connection. Takes the meeting's listeners. Errors: also those that the meeting
// place, or another rank, has reported. A rank that gives up sends the reason to the ranks that may count on it, and
// through the meeting place to the others. Without it they would have to guess, and would name the wrong rank.
Result<std::unique_ptr<ControlMesh>> connect_neighbours(const BootstrapConfig& config, Meeting& meeting,
                                                        const WaitLimit& limit);

}  // namespace trestle
