// `trestle run`: ranks as processes of this machine, with torchrun's variables.
#pragma once

#include "base/config/launcher.h"
#include "base/result.h"
#include "cli/run/run_options.h"

namespace trestle {

// Starts the ranks with `environment` and RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
// TRESTLE_SECRET (a fresh one, unless it is set). Passes on their output, and returns when all have ended: 0, or the
// status of the job's first failure (run/ending.h). Error: the job has not begun, and no rank is left. To be called
// once, from the main thread of a process without other threads: signals and children become the job's.
Result<int> run_ranks(const RunOptions& options, const Environment& environment);

}  // namespace trestle
