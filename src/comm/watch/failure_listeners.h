// FailureListeners: functions to call at once when a communicator fails, for users other than the threads that wait at
// its engine.
//
// Shared by the communicator and its listeners' registrations. Any thread; it has a mutex of its own, and calls the
// listeners under it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace trestle {

// Called on the failing thread, perhaps under the engine's progress lock. So it must not block, throw, call the library
// or end a registration. It may be called twice.
using FailureListener = std::function<void(const Error&)>;

class FailureListeners {
 public:
  // One listener, for as long as this lives. No call of it runs afterwards.
  class Registration {
   public:
    Registration(std::shared_ptr<FailureListeners> all, FailureListener listener)
        : all_(std::move(all)), listener_(std::move(listener)) {
      const MutexLock lock(all_->mutex_);
      all_->listeners_.push_back(&listener_);
    }
    ~Registration() {
      const MutexLock lock(all_->mutex_);
      all_->listeners_.erase(std::find(all_->listeners_.begin(), all_->listeners_.end(), &listener_));
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    const std::shared_ptr<FailureListeners> all_;
    const FailureListener listener_;
  };

  // Does not throw.
  void tell(const Error& error) {
    const MutexLock lock(mutex_);
    for (const FailureListener* listener : listeners_) (*listener)(error);
  }

 private:
  Mutex mutex_;
  std::vector<const FailureListener*> listeners_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
