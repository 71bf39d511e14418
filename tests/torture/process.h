// One process of a job: its ranks and their threads.
#pragma once

#include "torture/board.h"
#include "torture/job.h"

namespace torture {

// Never returns. 0: all checks held, with or without failures of communicators; else the board says what was wrong.
[[noreturn]] void run_process(const JobPlan& plan, int process, Board& board);

}  // namespace torture
