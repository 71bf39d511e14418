// Notifications: user functions that run when something is complete.
//
// Owned by Progress. Any thread adds one, under any lock of the library. One helper thread runs them, one at a time and
// under no lock.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <utility>

#include "base/mutex.h"

namespace trestle {

class Notifications {
 public:
  // One more will be added.
  void expect() { expected_.fetch_add(1, std::memory_order_seq_cst); }
  // Whether one has not run yet.
  bool expected() const { return expected_.load(std::memory_order_seq_cst) != 0; }
  // All of a list, which takes no memory.
  void add(std::list<std::function<void()>> notifications);
  // Whether one can run now.
  bool due() const { return due_.load(std::memory_order_relaxed); }
  void run();
  // From now on none starts; one that runs already continues.
  void process_exits() { exits_.store(true, std::memory_order_release); }

 private:
  std::atomic<int> expected_{0};
  std::atomic<bool> due_{false};  // to_run_ is not empty
  std::atomic<bool> exits_{false};
  Mutex mutex_;
  std::list<std::function<void()>> to_run_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
