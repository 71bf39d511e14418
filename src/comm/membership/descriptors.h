// How many descriptors a rank needs to have a communicator and to talk with one other rank. The transports make room
// for the connections with all others. What the ranks meet with is closed before the transports are made.
#pragma once

#include <cstddef>
#include <cstdint>

#include "control_mesh/dissemination.h"

namespace trestle {

inline size_t descriptors_of_rank(int32_t ranks) {
  constexpr size_t kMesh = 1;  // beside its connections
  constexpr size_t kEngine = 2;
  constexpr size_t kTransport = 4;  // a listener, one that waits for events, a connection each way
  constexpr size_t kBoard = 2;      // one while it is made
  const auto connections = 2 * static_cast<size_t>(dissemination_steps(ranks));
  return kMesh + connections + kEngine + kTransport + kBoard;
}

// Of a part whose ranks share the sockets of their host: the engine's and the board's, and two while it is made.
inline constexpr size_t kDescriptorsOfPart = 5;

}  // namespace trestle
