#include "comm/device/device_memory.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/run/progress.h"

namespace trestle {

// The driver may take long, and other threads must not wait for that, so it is asked without the mutex.
std::byte* DeviceMemory::allocate(uint64_t bytes) {
  {
    const MutexLock lock(mutex_);
    if (const auto kept = best_fit(kept_, bytes); kept != kept_.end()) {
      given_.splice(given_.end(), kept_, kept);
      return given_.back().memory;
    }
  }
  const Progress::IdleDrive idle_too;  // the driver may wait for calls that only this thread would drive
  Result<DeviceUse::Blocks> got = use_->take(place_, bytes);
  if (!got.ok()) {
    LOG(kWarn, kAlloc, "%llu bytes for staging on a device: %s", static_cast<unsigned long long>(bytes),
        got.error().message.c_str());
    return nullptr;
  }
  const MutexLock lock(mutex_);
  given_.splice(given_.end(), got.value());
  return given_.back().memory;
}

void DeviceMemory::free(std::byte* memory) {
  const MutexLock lock(mutex_);
  kept_.splice(kept_.end(), given_, std::ranges::find(given_, memory, &DeviceUse::Block::memory));
}

DeviceMemory::~DeviceMemory() {
  const MutexLock lock(mutex_);
  use_->keep(place_, std::move(given_));
  use_->keep(place_, std::move(kept_));
}

}  // namespace trestle
