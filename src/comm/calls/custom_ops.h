// CustomOps: the user-defined operators and pre-multiplied sums of a communicator, by their numbers.
//
// Owned by the communicator; any thread. Operators are shared with the calls that use them.
#pragma once

#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "engine/prepare/custom_op.h"

namespace trestle {

class CustomOps {
 public:
  void add(int32_t number, SharedOp op) {
    const MutexLock lock(mutex_);
    ops_.emplace(number, std::move(op));
  }
  // nullptr: this communicator has no such operator, or no longer.
  SharedOp find(int32_t number) const {
    const MutexLock lock(mutex_);
    const auto found = ops_.find(number);
    return found == ops_.end() ? nullptr : found->second;
  }
  // Removes the operator and returns it. Only one caller gets it; others get nullptr.
  SharedOp take(int32_t number) {
    const MutexLock lock(mutex_);
    const auto found = ops_.find(number);
    if (found == ops_.end()) return nullptr;
    SharedOp op = std::move(found->second);
    ops_.erase(found);
    return op;
  }

 private:
  mutable Mutex mutex_;
  std::map<int32_t, SharedOp> ops_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
