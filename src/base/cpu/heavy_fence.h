// Fences of which one side is free: a writer that looks for sleepers after every write pays nothing, and who goes to
// sleep pays for both.
//
// The problem: a writer stores data and then loads "does anybody sleep?"; a sleeper stores "I sleep" and then loads the
// data. Both need a full fence between the two, or both may miss what the other one stored. With membarrier(2), Linux
// 4.16, the sleeper's system call makes every running thread of all processes that have registered execute a full
// fence, so that the writer needs no more than the order of its program.
#pragma once

#include <atomic>

namespace trestle {

// Registers this process, once; cheap when it has been done. False: the system has no such call; then the writer
// must execute a fence of its own. Any thread.
bool register_for_heavy_fences();

// Sequentially consistent with every light_fence() of a thread of a registered process. Some microseconds.
void heavy_fence();

// Keeps the compiler from moving the load before the store.
inline void light_fence() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace trestle
