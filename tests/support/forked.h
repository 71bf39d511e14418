// Children that a test's process forks while it uses the library.
//
// Used inside a case (support/ranks.h). Checks in the child are gtest's; if one fails, the process that forked it fails
// too.
#pragma once

#include <sys/types.h>

#include <functional>

namespace ranks {

// Whether a child may allocate memory if its parent had other threads. Not with AddressSanitizer: in LLVM 14 its own
// allocator keeps the locks that those threads held.
bool children_may_allocate();

class Forked {
 public:
  // The child runs the body and then calls exit(), with all handlers and static destructors. It ends with the thread
  // that forked it.
  explicit Forked(const std::function<void()>& body);
  ~Forked();  // waits for the child's end
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  pid_t pid() const { return pid_; }
  // Waits for the child's end. Fails if this signal did not kill it or, with 0, if it failed.
  void expect_end(int signal = 0);

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
};

// In a forked child: uses the library like a program that needs only its own communicator. Makes `ranks` of them as
// threads, a stream and memory; adds up and verifies.
void use_own_communicator(int ranks);

// Children that only stay alive, beyond their parent's end, until this object ends. The test makes it before its
// processes.
class Nursery {
 public:
  Nursery();
  ~Nursery();  // ends the children and waits for the last one
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  // Every process of the test calls this first. The children then end with the test, not with this process.
  void enter();
  // Forks a child that stays alive. The child makes only async-signal-safe calls.
  void fork_one();

 private:
  int gate_[2];   // a process that reads its end exits
  int alive_[2];  // held open by the children
};

}  // namespace ranks
