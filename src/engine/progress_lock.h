// ProgressLock: who drives a rank's engine at this moment. Only ever tried: a thread that does not get it has other
// things to do, and its holders never wait for anything.
//
// Owned by the Engine; any thread.
#pragma once

#include <atomic>

#include "base/thread_annotations.h"

namespace trestle {

class TRESTLE_CAPABILITY("progress lock") ProgressLock {
 public:
  bool try_lock() TRESTLE_TRY_ACQUIRE(true) { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() TRESTLE_RELEASE() { held_.store(false, std::memory_order_release); }
  // Costs no write to its cache line.
  bool looks_held() const { return held_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace trestle
