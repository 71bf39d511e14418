// -P N: starts N processes of this program on this host, as torchrun would, and waits for them. Makes no library call:
// it only sets variables and reaps children.
#pragma once

namespace trestle::perf {

// Starts /proc/self/exe `processes` times with argv and "-P 0" (the last -P counts). Each process gets its RANK,
// LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR=127.0.0.1, a free MASTER_PORT, and one fresh TRESTLE_SECRET for
// all unless it is set. Children die with the parent. When one fails, the others get kGraceSeconds to notice, then they
// are killed. bind: each runs on a core of its own, as with trestle run, if there are enough that no other job has
// claimed. Returns when all are reaped: the exit code of the first that failed (128 + signal for a killed one), else 0.
// main calls it before any other thread exists.
int run_local_processes(int argc, char** argv, int processes, bool bind);

constexpr int kGraceSeconds = 10;

}  // namespace trestle::perf
