// `trestle train`: its options.
#pragma once

#include "cli/command.h"

namespace trestle {

// Adds `train` and its subcommands to the command line of `app`. The variables are read for a topology.
Command add_train_command(CLI::App& app);

}  // namespace trestle
