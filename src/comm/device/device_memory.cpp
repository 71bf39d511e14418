#include "comm/device/device_memory.h"

#include <algorithm>

#include "base/log.h"
#include "engine/run/progress.h"

namespace trestle {

// The driver may take long, and other threads must not wait for that, so it is asked without the mutex. The element of
// the list is made before, because nothing may fail once the driver has given memory.
std::byte* DeviceMemory::allocate(uint64_t bytes) {
  std::list<Block> made(1);
  {
    const MutexLock lock(mutex_);
    if (const auto kept = best_fit(kept_, bytes); kept != kept_.end()) {
      given_.splice(given_.end(), kept_, kept);
      return given_.back().memory;
    }
  }
  const Progress::IdleDrive idle_too;  // the driver may wait for calls that only this thread would drive
  const Result<Block> got = use_->take(place_, bytes);
  if (!got.ok()) {
    LOG(kWarn, kAlloc, "%llu bytes for staging on a device: %s", static_cast<unsigned long long>(bytes),
        got.error().message.c_str());
    source_is_empty();
  }
  made.front() = got.value();
  const MutexLock lock(mutex_);
  given_.splice(given_.end(), made);
  return given_.back().memory;
}

void DeviceMemory::free(std::byte* memory) {
  const MutexLock lock(mutex_);
  kept_.splice(kept_.end(), given_, std::ranges::find(given_, memory, &Block::memory));
}

DeviceMemory::~DeviceMemory() {
  const MutexLock lock(mutex_);
  for (const std::list<Block>* const blocks : {&given_, &kept_}) {
    for (const Block& block : *blocks) use_->keep(place_, block);
  }
}

}  // namespace trestle
