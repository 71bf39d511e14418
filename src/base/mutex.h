// Mutex and MutexLock: std::mutex and its guard, annotated for Clang's analysis of locks (thread_annotations.h).
//
// A Mutex is owned by the object it guards; any thread. No condition variables: threads of this library wait in epoll.
#pragma once

#include <mutex>

#include "base/thread_annotations.h"

namespace trestle {

class TRESTLE_CAPABILITY("mutex") Mutex {
 public:
  void lock() TRESTLE_ACQUIRE() { mutex_.lock(); }
  void unlock() TRESTLE_RELEASE() { mutex_.unlock(); }
  bool try_lock() TRESTLE_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

// Holds the mutex for as long as it lives.
class TRESTLE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TRESTLE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() TRESTLE_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace trestle
