// Strangers: many connections to every socket on which the processes of a job listen. Some are silent, some send
// garbage, some close at once.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "torture/board.h"

namespace torture {

// Never returns. Runs in a separate process until it is killed.
[[noreturn]] void flood(const std::vector<pid_t>& processes, uint64_t seed, Board& board);

}  // namespace torture
