// RailSuspicion: what this rank's pairs tell each other of one rail that may have become silent.
//
// A pair notices silence only on data that is under way. In a collective most pairs wait for others then, so that they
// would notice one after the other. Therefore the first pair that doubts a rail lets all others ask over it, and when a
// connection has ended, silence of the others counts sooner (peer_rails_silence.cpp). A rail that works answers.
//
// A connection that ends while another one counts as ended does not make that time longer. Otherwise ends in an
// overloaded network, where answers take long, would bring about further ends all the time.
//
// Owned by a RailTransport, one per rail; shared by the PeerRails of all its peers. Times of the transport's clock; 0:
// never.
#pragma once

#include <cstdint>

namespace trestle {

struct RailSuspicion {
  int64_t doubted_ns = 0;  // when a pair began to doubt the rail, or its connection ended, last
  int64_t ended_ns = 0;    // when a connection over it ended, and none counted as ended

  bool has_ended(int64_t now_ns, int64_t silence_ns) const { return ended_ns != 0 && now_ns - ended_ns < silence_ns; }
  void ended(int64_t now_ns, int64_t silence_ns) {
    doubted_ns = now_ns;
    if (!has_ended(now_ns, silence_ns)) ended_ns = now_ns;
  }
};

}  // namespace trestle
