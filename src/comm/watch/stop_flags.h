// StopFlags: the stop flags of several waits, set together. A communicator has one for waits that do not use its engine
// (splits of it), set when it fails. A process has one for creations, set when it exits.
//
// Any thread; it has a mutex of its own, and calls nothing under it.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/mutex.h"

namespace trestle {

class StopFlags {
 public:
  // Registers the flag of one wait for as long as this lives. Sets it at once if the failure came earlier.
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
