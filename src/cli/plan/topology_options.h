// The options of subcommands that need dimensions: --dims, --topo and -n.
#pragma once

#include "cli/plan/info.h"

namespace CLI {
class App;
}

namespace trestle {

// Adds them to a subcommand. `options` is written when the command line is parsed, and must live until then.
void add_topology_options(CLI::App& command, TopologyOptions& options);

}  // namespace trestle
