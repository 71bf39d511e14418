#include "comm/device/device_memory.h"

#include <algorithm>

#include "base/log.h"
#include "engine/run/progress.h"

namespace trestle {

// Leaves a block that is much too large to a larger request. nullptr: nothing fits.
std::byte* KeptMemory::take_kept(uint64_t bytes) {
  const MutexLock lock(mutex_);
  Block* best = nullptr;
  for (Block& block : blocks_) {
    const bool fits = !block.given && block.bytes >= bytes && block.bytes / 2 <= bytes;
    if (fits && (best == nullptr || block.bytes < best->bytes)) best = &block;
  }
  if (best == nullptr) return nullptr;
  best->given = true;
  return best->memory;
}

// The driver may take long, and other threads must not wait for that, so it is asked without the mutex. The element of
// the list is made before, because nothing may fail once the driver has given memory.
std::byte* KeptMemory::allocate(uint64_t bytes) {
  if (std::byte* const kept = take_kept(bytes)) return kept;
  std::list<Block> made(1);
  const Progress::IdleDrive idle_too;  // the driver may wait for calls that only this thread would drive
  const Result<std::byte*> got = get(bytes);
  if (!got.ok()) {
    LOG(kWarn, kAlloc, "%llu bytes for staging on a device: %s", static_cast<unsigned long long>(bytes),
        got.error().message.c_str());
    source_is_empty();
  }
  made.front() = {got.value(), bytes, true};
  const MutexLock lock(mutex_);
  blocks_.splice(blocks_.end(), made);
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
