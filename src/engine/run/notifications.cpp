#include "engine/run/notifications.h"

#include <utility>

namespace trestle {

void Notifications::add(std::list<std::function<void()>> notifications) {
  const MutexLock lock(mutex_);
  to_run_.splice(to_run_.end(), notifications);
  due_.store(true, std::memory_order_relaxed);
}

void Notifications::run() {
  std::list<std::function<void()>> notifications;
  {
    const MutexLock lock(mutex_);
    notifications.swap(to_run_);
    due_.store(false, std::memory_order_relaxed);
  }
  for (const auto& notification : notifications) {
    if (!exits_.load(std::memory_order_acquire)) notification();
    expected_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

}  // namespace trestle
