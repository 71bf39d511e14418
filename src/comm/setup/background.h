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
  // Its thread waits for begin(): what must not be done in vain is done when there is one.
  static Result<std::shared_ptr<Background>> start(Body body);
  ~Background() {
    give_up();
    join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  const Status& status() const { return status_; }  // when it has ended
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
  // True for the one that opened it.
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
  Status status_;  // the thread's, until ended_
  Mutex mutex_;
  Thread thread_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
