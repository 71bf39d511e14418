// Whereabouts: the hosts and processes of ranks as small numbers, which are quick to compare and take little memory. A
// value.
#pragma once

#include <cstdint>
#include <vector>

#include "base/transport_kinds.h"
#include "topology/topology.h"

namespace trestle {

// Ranks of one host have the same host number, and ranks of one process the same process number. Numbers are given in
// order of first appearance. Process numbers count over all hosts.
struct Whereabouts {
  std::vector<int32_t> host;     // by rank
  std::vector<int32_t> process;  // by rank
  // By rank: the host, or the process if a rank of this host cannot share memory. Numbers of hosts and processes
  // differ.
  std::vector<int32_t> memory;
  int32_t hosts = 0;
  int32_t processes = 0;

  // The reach that a transport needs to join two ranks.
  Reach apart(int32_t a, int32_t b) const;
};

// places[r] is rank r's.
Whereabouts whereabouts(const std::vector<RankPlace>& places);

// The pairs of ranks whose outermost difference is dimension d: they are in different blocks of `stride` ranks inside
// one block of `span` = stride * P_d ranks.
struct Level {
  int32_t stride = 1;
  int32_t span = 1;
};
Level level_of(const Topology& topology, size_t d);
// Whether no two ranks that differ outermost in this dimension can share memory. Looks at every rank once.
bool all_apart(const Level& level, const Whereabouts& at);

}  // namespace trestle
