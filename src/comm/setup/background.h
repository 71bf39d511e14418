// Background: runs one task for a handle on a thread of its own: the creation or the finalization of a communicator
// whose C call has returned already.
//
// Shared by the handle and the threads that look at it; any thread. The last owner waits for its end. Call stop() first
// to make that soon.
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
  // It must end soon after its argument was set. Error: no thread could be started.
  using Body = std::function<Status(std::atomic<bool>& stop)>;
  // The thread waits for begin(). So a caller can start the thread first, and take other steps only when there is one.
  static Result<std::shared_ptr<Background>> start(Body body);
  ~Background() {
    give_up();
    join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  const Status& status() const { return status_; }  // valid when it has ended
  void begin() { open(kBegin); }
  // True if it has not begun: then it never will, and ends with kAborted.
  bool give_up() { return open(kNever); }
  void stop() {
    stop_ = true;
    give_up();
  }
  void join();

 private:
  explicit Background(Body body) : body_(std::move(body)) {}
  void run();
  enum Gate : int { kClosed, kBegin, kNever };
  // True for the call that opened the gate.
  bool open(Gate how) {
    int closed = kClosed;
    if (!gate_.compare_exchange_strong(closed, how)) return false;
    gate_.notify_all();
    return true;
  }

  Body body_;
  std::atomic<int> gate_{kClosed};
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  Status status_;  // written by the thread, until ended_
  Mutex mutex_;
  Thread thread_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
