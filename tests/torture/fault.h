// The part of a fault that runs inside the victim.
#pragma once

#include "torture/board.h"
#include "torture/job.h"

namespace torture {

// The action before which the fault happens. -1: before the communicator is made. The last action is after all work
// that other ranks need.
// need.
int fault_action(const Fault& fault, const Program& program);
// Records the fault on the board for the driver.
void mark_struck(Board& board, int action);
// Kills or stops the process from a separate thread, after the fault's busy loop.
void strike_later(const Fault& fault, Board& board, int action);

}  // namespace torture
