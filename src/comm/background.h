// Background: one thing done for a handle on a thread of its own: the making or the finalization of a communicator
// whose call has returned meanwhile.
//
// Shared by the handle and whoever looks; any thread. The last owner waits for its end: stop() before, where that must
// be soon.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"

namespace trestle {

class Background {
 public:
  // Nothing may leave the body by an exception; it ends soon after its argument was raised. Errors: there is no thread
  // for it.
  using Body = std::function<Status(std::atomic<bool>& stop)>;
  static Result<std::shared_ptr<Background>> start(Body body);
  ~Background() { join(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  const Status& status() const { return status_; }  // when it has ended
  void stop() { stop_ = true; }
  void join();

 private:
  explicit Background(Body body) : body_(std::move(body)) {}
  void run();

  Body body_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  Status status_;  // the thread's, until ended_
  Mutex mutex_;
  Thread thread_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
