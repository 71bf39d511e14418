// Strangers: connections to every socket on which the processes of a job listen. Silent ones, garbage, and such that
// close at once, in numbers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "torture/board.h"

namespace torture {

// Never returns: runs in a process of its own until it is killed.
[[noreturn]] void flood(const std::vector<pid_t>& processes, uint64_t seed, Board& board);

}  // namespace torture
