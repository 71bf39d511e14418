// `trestle sim advise`: its options and what it prints. And `trestle sim train`, which only names the command that
// replaced it.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/command.h"

namespace trestle {

inline constexpr int64_t kMostChunks = 65536;  // that the options of simulations take

// Adds both to `sim`.
std::vector<Command> add_design_commands(CLI::App& sim);

}  // namespace trestle
