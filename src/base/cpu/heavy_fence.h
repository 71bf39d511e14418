// A pair of fences of which one is free. A writer that checks for sleepers after every write pays nothing; a thread
// that goes to sleep pays for both.
//
// The problem: a writer stores data and then loads "does any thread sleep?". A sleeper stores "I sleep" and then loads
// the data. Both need a full fence in between, or each may miss what the other has stored. With membarrier(2) (Linux
// 4.16) the sleeper's system call makes every running thread of all registered processes execute a full fence. So the
// writer only needs program order.
#pragma once

#include <atomic>

namespace trestle {

// Registers this process, once; cheap if that was done before. False: the system has no such call, and the writer must
// execute a fence of its own. Any thread.
bool register_for_heavy_fences();

// Sequentially consistent with every light_fence() of a thread of a registered process. Takes some microseconds.
void heavy_fence();

// Keeps the compiler from moving the load before the store.
inline void light_fence() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace trestle
