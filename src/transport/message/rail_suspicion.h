// RailSuspicion: what this rank's pairs tell each other of one rail that has become silent.
//
// A pair notices silence only on data that is under way. In a collective most pairs wait for others then, so that they
// would notice one after the other. Therefore the first pair that doubts a rail lets all others send a probe over it,
// and when a connection has ended, silence of the others counts after a quarter of the time. A rail that works answers
// the probe.
//
// Owned by a RailTransport, one per rail; shared by the PeerRails of all its peers. Times of the transport's clock; 0:
// never.
#pragma once

#include <cstdint>

namespace trestle {

struct RailSuspicion {
  int64_t doubted_ns = 0;  // when a pair began to doubt the rail, or its connection ended, last
  int64_t ended_ns = 0;    // when a connection over it ended last
};

}  // namespace trestle
