// ProgressLock: who drives a rank's engine at this moment. Only ever tried: a thread that does not get it has other
// things to do, and its holders never wait for anything.
//
// Owned by the Engine; any thread.
#pragma once

#include <sched.h>

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

// Holds it for as long as it lives, for those who may not be put off: its holders never wait for anything.
class TRESTLE_SCOPED_CAPABILITY PatientLock {
 public:
  explicit PatientLock(ProgressLock& lock) TRESTLE_ACQUIRE(lock) : lock_(lock) {
    while (!lock.try_lock()) ::sched_yield();
  }
  ~PatientLock() TRESTLE_RELEASE() { lock_.unlock(); }
  PatientLock(const PatientLock&) = delete;
  PatientLock& operator=(const PatientLock&) = delete;

 private:
  ProgressLock& lock_;
};

}  // namespace trestle
