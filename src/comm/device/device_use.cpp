#include "comm/device/device_use.h"

#include <utility>

#include "base/log.h"

namespace trestle {

DeviceUse::Blocks::iterator best_fit(DeviceUse::Blocks& blocks, uint64_t bytes, bool of_any_length) {
  auto best = blocks.end();
  for (auto block = blocks.begin(); block != blocks.end(); ++block) {
    const bool fits = block->bytes >= bytes && (of_any_length || block->bytes / 2 <= bytes);
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

bool DeviceUse::take_kept(SharedPlace place, uint64_t bytes, bool of_any_length, Blocks& taken) {
  const MutexLock lock(mutex_);
  Blocks& blocks = kept(place);
  const auto found = best_fit(blocks, bytes, of_any_length);
  if (found == blocks.end()) return false;
  taken.splice(taken.end(), blocks, found);
  return true;
}

Result<DeviceUse::Blocks> DeviceUse::take(SharedPlace place, uint64_t bytes) {
  Blocks taken;
  if (take_kept(place, bytes, false, taken)) return taken;
  Blocks made(1);  // before: nothing may fail once the driver has given memory
  const bool pinned = place == SharedPlace::kHost;
  const Result<std::byte*> got = pinned ? device_.allocate_pinned(bytes) : device_.allocate(bytes);
  if (got.ok()) {
    made.front() = {got.value(), bytes};
    return made;
  }
  if (take_kept(place, bytes, true, taken)) return taken;
  return got.error();
}

void DeviceUse::keep(SharedPlace place, Blocks&& blocks) {
  const MutexLock lock(mutex_);
  Blocks& all = kept(place);
  all.splice(all.end(), blocks);
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
