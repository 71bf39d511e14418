// -P N: starts N processes of this program on this host, as trestle run does, and waits for them.
#pragma once

namespace trestle::perf {

// Starts /proc/self/exe `processes` times with argv and "-P 0" (the last -P counts), and torchrun's variables as
// run_ranks() sets them. The processes write where this one does. They die with it, and get the signals that it gets.
// When one fails, the others get kGraceSeconds to notice, then they are ended. bind: each runs on a core of its own, if
// there are enough that no other job has claimed. Returns when all have ended: the exit code of the first that failed
// (128 + signal for a killed one), else 0. main calls it before any other thread exists.
int run_local_processes(int argc, char** argv, int processes, bool bind);

constexpr int kGraceSeconds = 10;

}  // namespace trestle::perf
