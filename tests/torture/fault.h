// The part of a fault that happens inside the victim.
#pragma once

#include "torture/board.h"
#include "torture/job.h"

namespace torture {

// The action before which it happens; -1: before the communicator is made; the last action is after all that others
// need.
int fault_action(const Fault& fault, const Program& program);
// On the board, for the driver.
void mark_struck(Board& board, int action);
// From a thread of its own, after the fault's busy loop: the process is killed or stopped.
void strike_later(const Fault& fault, Board& board, int action);

}  // namespace torture
