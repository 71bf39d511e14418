#include "comm/device/device_memory.h"

#include <algorithm>

#include "base/log.h"

namespace trestle {

// What is much too large would be missed by a larger request.
std::byte* KeptMemory::allocate(uint64_t bytes) {
  const MutexLock lock(mutex_);
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const bool fits = !block.given && block.bytes >= bytes && block.bytes / 2 <= bytes;
    if (fits && (best == nullptr || block.bytes < best->bytes)) best = &block;
  }
  if (best != nullptr) {
    best->given = true;
    return best->memory;
  }
  blocks_.reserve(blocks_.size() + 1);
  const Result<std::byte*> got = get(bytes);
  if (!got.ok()) {
    LOG(kWarn, kAlloc, "%llu bytes for staging on a device: %s", static_cast<unsigned long long>(bytes),
        got.error().message.c_str());
    source_is_empty();
  }
  blocks_.push_back({got.value(), bytes, true});
  return got.value();
}

void KeptMemory::free(std::byte* memory) {
  const MutexLock lock(mutex_);
  std::ranges::find(blocks_, memory, &Block::memory)->given = false;
}

// A device that fails has failed its users already.
void KeptMemory::end() {
  const MutexLock lock(mutex_);
  for (const Block& block : blocks_) {
    const Status freed = give_back(block.memory);
    if (!freed.ok()) LOG(kInfo, kAlloc, "staging of a device was not freed: %s", freed.error().message.c_str());
  }
  blocks_.clear();
}

}  // namespace trestle
