// LifeCycle: how far a communicator has come towards its end. Each flag is set once and stays. Any thread.
#pragma once

#include <atomic>

namespace trestle {

struct LifeCycle {
  std::atomic<bool> finalizing{false};  // its finalization has begun
  std::atomic<bool> finalized{false};   // on all ranks
  std::atomic<bool> closed{false};      // it is being destroyed, or is
};

}  // namespace trestle
