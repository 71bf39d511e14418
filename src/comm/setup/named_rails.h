// What is named for the rails of each dimension: by the topology, or by TRESTLE_RAILS.
//
// Interfaces may have other names on other hosts, so ranks cannot tell the rails of dimensions apart by them. They use
// names that all ranks know: a topology is the same everywhere, and of TRESTLE_RAILS the shape (rails_shape) is.
//
// Values; pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"
#include "topology/whereabouts.h"
#include "transport/rails/rails_text.h"

namespace trestle {

struct NamedRails {
  // Equal on all ranks. Dimensions with equal names have the same rails: "eth1,eth2", "TRESTLE_RAILS:2". "": none are
  // named, so the transport finds its interfaces.
  std::string name;
  // The interfaces of this rank, in the grammar of TRESTLE_RAILS for one dimension. "": the transport finds them.
  std::string interfaces;
  bool by_topology = false;  // else by TRESTLE_RAILS
  bool operator==(const NamedRails&) const = default;
};

// Which entry of TRESTLE_RAILS speaks of the innermost dimension; the next ones speak of the next dimensions. The first
// entry does, with one exception: a transport that joins only ranks of one host, in front of others, is skipped where
// the innermost dimension joins hosts. So "shm;eth0" is right with one rank per host, too. Equal on all ranks.
size_t first_entry(const Topology& topology, const Whereabouts& at, const std::vector<DimensionRails>& said);

// By dimension of the topology. `said`: this rank's TRESTLE_RAILS, of which entry `first` speaks of dimension 0.
// kInvalidArgument: it names a transport for a dimension that uses another one. TRESTLE_RAILS does not choose
// transports, but what it says of them must be right.
Result<std::vector<NamedRails>> named_rails(const Topology& topology, const std::vector<DimensionRails>& said,
                                            size_t first);

}  // namespace trestle
