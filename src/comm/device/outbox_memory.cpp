#include "comm/device/outbox_memory.h"

#include <utility>

#include "base/check.h"
#include "memory/mem_alloc.h"

namespace trestle {

// One of which much stays lent is left alone.
OutboxStore::Kept* OutboxStore::take_free() {
  const MutexLock lock(mutex_);
  for (Kept& kept : kept_) {
    if (kept.lent || kept.outbox->free_bytes() < bytes_of(place_) / 2) continue;
    kept.lent = true;
    return &kept;
  }
  return nullptr;
}

Result<Region> OutboxStore::make_on_device(Kept& kept) {
  const uint64_t bytes = bytes_of(place_);
  const SharedMemory made = TRY(allocate_shared(device_, bytes));
  kept.ticket = made.ticket;
  return Region{made.memory, bytes, {mem_new_id(), 0}, device_.info().index};
}

Result<Region> OutboxStore::make_on_host(Kept& kept) {
  const uint64_t bytes = bytes_of(place_);
  kept.segment = TRY(Segment::create("trestle-outbox", bytes, false));
  TRY(device_.pin(kept.segment.data(), bytes));
  kept.ticket = ticket_of(kept.segment);
  return Region{kept.segment.data(), bytes, {mem_new_id(), 0}, kHostMemory};
}

Result<OutboxStore::Kept*> OutboxStore::make() {
  std::list<Kept> made(1);
  Kept& kept = made.front();
  const Region region = TRY(place_ == SharedPlace::kDevice ? make_on_device(kept) : make_on_host(kept));
  kept.outbox = std::make_unique<Outbox>(region);
  kept.lent = true;
  const MutexLock lock(mutex_);
  kept_.splice(kept_.end(), made);
  return &kept;
}

void OutboxStore::take_back(Kept& kept) {
  const MutexLock lock(mutex_);
  kept.lent = false;
}

Result<std::shared_ptr<Outbox>> OutboxStore::lend() {
  Kept* kept = take_free();
  if (kept == nullptr) kept = TRY(make());
  return std::shared_ptr<Outbox>(kept->outbox.get(), [this, kept](Outbox*) { take_back(*kept); });
}

MemoryAddress OutboxStore::address_of(const Outbox& outbox) {
  const MutexLock lock(mutex_);
  for (const Kept& kept : kept_) {
    if (kept.outbox.get() == &outbox) return {kept.ticket, outbox.region().share.id, outbox.region().bytes, 0};
  }
  CHECK(false, "an outbox of another device");
  return {};
}

}  // namespace trestle
