// For tests whose program replaces operator new (issue_test.cpp): it counts allocations, and can refuse them. Of the
// calling thread.
#pragma once

namespace trestle {

extern thread_local int allocations;

struct AllocationFault {
  long before = -1;     // allocations before the one that fails; negative: none fails
  bool stays = false;   // all that follow fail too
  bool failed = false;  // one has
  bool fails() {
    if (before < 0 || before-- != 0) return false;
    if (stays) before = 0;
    return failed = true;
  }
};
extern thread_local AllocationFault allocation_fault;

// Runs `call` with memory for `before` allocations. Whether one has failed.
template <class F>
bool short_of_memory(long before, bool stays, F&& call) {
  allocation_fault = {before, stays, false};
  call();
  allocation_fault.before = -1;
  return allocation_fault.failed;
}

}  // namespace trestle
