// Thread: a thread of this library. Starting one can fail and returns an error; std::thread would throw.
//
// The destructor joins a thread that was neither joined nor detached. These threads block all signals: signals belong
// to the program. They compute in the default floating-point environment. A thread that finds no memory for a small
// allocation, or that an exception leaves, ends the process with a sentence: nobody could finish what it leaves half
// done.
#pragma once

#include <pthread.h>

#include <functional>
#include <optional>

#include "base/result.h"

namespace trestle {

class Thread {
 public:
  Thread() = default;
  // The body must end by itself. name: of the kind of thread, for the sentence that ends the process; a literal. Error:
  // the system's limits (kSystemError).
  static Result<Thread> start(const char* name, std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread() { join(); }

  bool joinable() const { return id_.has_value(); }
  void join();    // does nothing if it was joined or detached already
  void detach();  // the thread goes on alone

 private:
  std::optional<pthread_t> id_;
};

namespace thread_internal {
void run_or_end_process(const char* where, const std::function<void()>& body);
}  // namespace thread_internal

// Runs the body on this thread, which may be the program's. An exception that leaves the body, mostly of a small
// allocation, ends the process with a sentence that says `where`. For what must not stay half done, such as the end of
// a communicator.
template <class F>
void run_or_end_process(const char* where, F&& body) {
  thread_internal::run_or_end_process(where, std::ref(body));  // by reference: that takes no memory
}

}  // namespace trestle
