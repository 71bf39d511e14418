// What is named for the rails of each dimension: by the topology, or by TRESTLE_RAILS.
//
// Interfaces may have other names on other hosts, so ranks cannot tell the rails of dimensions apart by them. They use
// names that all ranks know: a topology is the same everywhere, and of TRESTLE_RAILS the shape (rails_shape) is.
//
// Values; pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "topology/topology.h"
#include "transport/rails/rails_text.h"

namespace trestle {

struct NamedRails {
  // Equal on all ranks. Dimensions with equal names have the same rails: "eth1,eth2", "TRESTLE_RAILS:2". "": whatever
  // leads there.
  std::string name;
  // Of this rank, in the grammar of TRESTLE_RAILS for one dimension. "": found out.
  std::string interfaces;
  bool by_topology = false;  // else by TRESTLE_RAILS
  bool operator==(const NamedRails&) const = default;
};

// By dimension of the topology. `said`: this rank's TRESTLE_RAILS.
std::vector<NamedRails> named_rails(const Topology& topology, const std::vector<DimensionRails>& said);

}  // namespace trestle
