// One process of a job: its ranks and their threads.
#pragma once

#include "torture/board.h"
#include "torture/job.h"

namespace torture {

// Never returns. Exits with 0 if all checks passed, with or without failures of communicators. Else the board has the
// error.
[[noreturn]] void run_process(const JobPlan& plan, int process, Board& board);

}  // namespace torture
