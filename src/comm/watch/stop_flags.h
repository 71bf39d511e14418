// StopFlags: stop flags of things that wait, raised together. Of a communicator: what waits on its behalf without its
// engine (creations of others from it), raised when it fails. Of a process: creations that the exit ends.
//
// Any thread, its own mutex, under which nothing is called.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/mutex.h"

namespace trestle {

class StopFlags {
 public:
  // Registers the flag of one wait for as long as this lives; raised at once where the failure was earlier.
  class Registration {
   public:
    Registration(StopFlags& all, std::atomic<bool>& flag) : all_(all), flag_(flag) {
      const MutexLock lock(all_.mutex_);
      all_.flags_.push_back(&flag_);
      if (all_.raised_) flag_ = true;
    }
    ~Registration() {
      const MutexLock lock(all_.mutex_);
      all_.flags_.erase(std::find(all_.flags_.begin(), all_.flags_.end(), &flag_));
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    StopFlags& all_;
    std::atomic<bool>& flag_;
  };

  bool none() {
    const MutexLock lock(mutex_);
    return flags_.empty();
  }

  void raise() {
    const MutexLock lock(mutex_);
    raised_ = true;
    for (std::atomic<bool>* flag : flags_) *flag = true;
  }

 private:
  Mutex mutex_;
  bool raised_ TRESTLE_GUARDED_BY(mutex_) = false;
  std::vector<std::atomic<bool>*> flags_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
