// `trestle sim`: its options and what it prints.
#pragma once

#include "cli/command.h"

namespace trestle {

// Adds `sim` and its subcommands to the command line of `app`.
Command add_sim_command(CLI::App& app);

}  // namespace trestle
