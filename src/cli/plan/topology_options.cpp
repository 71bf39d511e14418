#include "cli/plan/topology_options.h"

#include <CLI/CLI.hpp>

namespace trestle {

void add_topology_options(CLI::App& command, TopologyOptions& options) {
  auto* dims = command.add_option("--dims", options.dims, "Sizes of the dimensions, innermost first: 4x2");
  command.add_option("--topo,--file", options.file, "JSON topology file")->excludes(dims);
  command.add_option("-n,--ranks", options.ranks, "Number of ranks; without --dims or --topo: all in one dimension")
      ->check(CLI::Range(1, 1 << 20));
}

}  // namespace trestle
