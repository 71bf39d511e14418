// Thread: a thread of this library. Starting one can fail and says so: std::thread would throw.
//
// Owned by whoever joins it: the destructor joins what was neither joined nor detached. The program's signals are the
// program's: such a thread takes none.
#pragma once

#include <pthread.h>

#include <functional>
#include <optional>

#include "base/result.h"

namespace trestle {

class Thread {
 public:
  Thread() = default;
  // The body must end by itself; nothing may leave it by an exception. Errors: the system's limits (kSystemError).
  static Result<Thread> start(std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread() { join(); }

  bool joinable() const { return id_.has_value(); }
  void join();    // does nothing when it was joined or detached already
  void detach();  // it goes on alone

 private:
  std::optional<pthread_t> id_;
};

}  // namespace trestle
