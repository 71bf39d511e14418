// The allocations of a test's program: counted, and refused where a test asks for it. Per thread.
//
// allocations.cpp replaces operator new of the whole program, the library included. Sanitizers have allocation
// functions of their own, which then miss what is allocated.
#pragma once

namespace allocations {

// By the calling thread so far.
int made();

struct Refusal {
  long before = -1;         // allocations before the one that is refused; negative: none is
  bool stays = false;       // all that follow are refused too
  bool failed = false;      // one was refused
  unsigned long least = 0;  // bytes: shorter ones do not count
};
// Of the calling thread.
Refusal& refusal();
// From now on all allocations of all other threads are refused.
void refuse_other_threads();

// Runs `call` with memory for `before` allocations of this thread. Whether one was refused.
template <class F>
bool short_of_memory(long before, bool stays, F&& call) {
  refusal() = {before, stays};
  call();
  refusal().before = -1;
  return refusal().failed;
}

}  // namespace allocations
