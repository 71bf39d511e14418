// `trestle topo`: its options, and what it shows.
#pragma once

#include "cli/command.h"

namespace trestle {

// Adds `topo` to the command line of `app`. If a launcher has started several ranks, all of them meet; rank 0 returns
// the text and the others "".
Command add_topo_command(CLI::App& app);

}  // namespace trestle
