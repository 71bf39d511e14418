#include "comm/device/device_memory.h"

#include <new>

#include "base/log.h"

namespace trestle {

std::byte* KeptMemory::allocate(uint64_t bytes) {
  const MutexLock lock(mutex_);
  // What is much too large would be missed by a larger request.
  const auto kept = kept_.lower_bound(bytes);
  if (kept != kept_.end() && kept->first / 2 <= bytes) {
    std::byte* const memory = kept->second;
    given_.emplace(memory, kept->first);
    kept_.erase(kept);
    return memory;
  }
  const Result<std::byte*> got = get(bytes);
  if (!got.ok()) {
    LOG(kWarn, kAlloc, "%llu bytes for staging on a device: %s", static_cast<unsigned long long>(bytes),
        got.error().message.c_str());
    throw std::bad_alloc();
  }
  try {
    given_.emplace(got.value(), bytes);
  } catch (...) {
    (void)give_back(got.value());
    throw;
  }
  return got.value();
}

void KeptMemory::free(std::byte* memory) {
  const MutexLock lock(mutex_);
  auto node = given_.extract(memory);
  const uint64_t bytes = node.mapped();
  try {
    kept_.emplace(bytes, memory);
  } catch (const std::bad_alloc&) {
    given_.insert(std::move(node));  // it goes back at the end
  }
}

// A device that fails has failed its users already.
void KeptMemory::end() {
  const MutexLock lock(mutex_);
  const auto give = [this](std::byte* memory) {
    const Status freed = give_back(memory);
    if (!freed.ok()) LOG(kInfo, kAlloc, "staging of a device was not freed: %s", freed.error().message.c_str());
  };
  for (const auto& [memory, bytes] : given_) give(memory);
  for (const auto& [bytes, memory] : kept_) give(memory);
  given_.clear();
  kept_.clear();
}

}  // namespace trestle
