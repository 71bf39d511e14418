#include "comm/device/device_use.h"

#include <utility>

#include "base/log.h"

namespace trestle {

std::list<DeviceUse::Block>::iterator best_fit(std::list<DeviceUse::Block>& blocks, uint64_t bytes) {
  auto best = blocks.end();
  for (auto block = blocks.begin(); block != blocks.end(); ++block) {
    const bool fits = block->bytes >= bytes && block->bytes / 2 <= bytes;
    if (fits && (best == blocks.end() || block->bytes < best->bytes)) best = block;
  }
  return best;
}

// A device that fails here has failed its users already.
DeviceUse::~DeviceUse() {
  const auto said = [](const Status& freed) {
    if (!freed.ok()) LOG(kInfo, kAlloc, "staging of a device was not freed: %s", freed.error().message.c_str());
  };
  const MutexLock lock(mutex_);
  for (const Block& block : kept_) said(device_.free(block.memory));
  for (const Block& block : kept_pinned_) said(device_.free_pinned(block.memory));
}

Result<DeviceUse::Block> DeviceUse::take(SharedPlace place, uint64_t bytes) {
  {
    const MutexLock lock(mutex_);
    std::list<Block>& blocks = kept(place);
    if (const auto found = best_fit(blocks, bytes); found != blocks.end()) {
      const Block block = *found;
      blocks.erase(found);
      return block;
    }
  }
  const bool pinned = place == SharedPlace::kHost;
  return Block{TRY(pinned ? device_.allocate_pinned(bytes) : device_.allocate(bytes)), bytes};
}

void DeviceUse::keep(SharedPlace place, const Block& block) {
  const MutexLock lock(mutex_);
  kept(place).push_back(block);
}

// Threads that come at the same time may each open it; one of them is kept.
Result<std::shared_ptr<const OpenedMemory>> DeviceUse::open(SharedPlace place, const MemoryAddress& address,
                                                            const UniqueFd& descriptor) {
  const bool is_kept = place == SharedPlace::kHost || address.by == SharedBy::kTicket;
  if (is_kept) {
    const MutexLock lock(mutex_);
    if (const auto found = opened_.find(address.nonce); found != opened_.end()) return found->second;
  }
  std::shared_ptr<const OpenedMemory> memory = TRY(OpenedMemory::open(device_, place, address, descriptor));
  if (!is_kept) return memory;
  const MutexLock lock(mutex_);
  return opened_.try_emplace(address.nonce, std::move(memory)).first->second;
}

}  // namespace trestle
