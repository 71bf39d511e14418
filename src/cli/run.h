// `trestle run`: ranks as processes of this machine, with torchrun's variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/launcher.h"
#include "base/result.h"

namespace trestle {

struct RunOptions {
  int ranks = 1;
  std::vector<std::string> command;  // program and arguments
  int64_t grace_ns = 5'000'000'000;  // between SIGTERM and SIGKILL, once a rank has failed
};

// Starts the ranks with `environment` and RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
// TRESTLE_SECRET (a fresh one, unless it is set), passes on their output, forwards SIGINT, SIGTERM and SIGHUP (the
// second one kills), and returns when all have ended: 0, or the code of the first that failed (128 + signal). Call it
// from the main thread of a process that has no other.
Result<int> run_ranks(const RunOptions& options, const Environment& environment);

}  // namespace trestle
