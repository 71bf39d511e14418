// `trestle sim advise`: its options and what it prints. And `trestle sim train`, which only names the command that
// replaced it.
#pragma once

#include <vector>

#include "cli/command.h"

namespace trestle {

// Adds both to `sim`.
std::vector<Command> add_design_commands(CLI::App& sim);

}  // namespace trestle
