// Children that a test's process forks while it uses the library.
//
// Used inside a case (support/ranks.h): checks in the child are gtest's, and the process that forked it fails with
// them.
#pragma once

#include <sys/types.h>

#include <functional>

namespace ranks {

class Forked {
 public:
  // The child runs the body and then calls exit(), with all handlers and static destructors. It ends with the thread
  // that forked it.
  explicit Forked(const std::function<void()>& body);
  ~Forked();  // waits for its end
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  pid_t pid() const { return pid_; }
  // Waits for its end and fails if it was not killed by this signal, or, with 0, has failed.
  void expect_end(int signal = 0);

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
};

// In a forked child, as a program that needs nothing but a communicator of its own would: `ranks` of them as threads, a
// stream and memory; adds up and verifies.
void use_own_communicator(int ranks);

// Children that do nothing but live, past their parent's end, until this ends. Made by the test before its processes.
class Nursery {
 public:
  Nursery();
  ~Nursery();  // ends the children, and returns when the last is gone
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  // In each process of the test, at first: the children end with the test and not with this process.
  void enter();
  // Forks one that lives on. Async-signal-safe calls only in the child.
  void fork_one();

 private:
  int gate_[2];   // whoever reads the end of it ends
  int alive_[2];  // held open by the children
};

}  // namespace ranks
