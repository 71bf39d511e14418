// Thread: a thread of this library. Starting one can fail and returns an error; std::thread would throw.
//
// The destructor joins a thread that was neither joined nor detached. These threads block all signals: signals belong
// to the program.
#pragma once

#include <pthread.h>

#include <functional>
#include <optional>

#include "base/result.h"

namespace trestle {

class Thread {
 public:
  Thread() = default;
  // The body must end by itself and must not throw. Error: the system's limits (kSystemError).
  static Result<Thread> start(std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread() { join(); }

  bool joinable() const { return id_.has_value(); }
  void join();    // does nothing if it was joined or detached already
  void detach();  // the thread goes on alone

 private:
  std::optional<pthread_t> id_;
};

}  // namespace trestle
