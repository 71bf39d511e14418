#include "comm/device/outbox_memory.h"

#include <utility>

#include "base/log.h"
#include "memory/mem_alloc.h"

namespace trestle {

// Nothing of this device touches it any more.
void OutboxStore::free_damaged() {
  std::list<Kept> damaged;
  {
    const MutexLock lock(mutex_);
    for (auto kept = kept_.begin(); kept != kept_.end();) {
      const auto one = kept++;
      const bool is_whole = one->outbox->free_bytes() == bytes_of(place_);
      if (!one->lent && !is_whole && one->shared.by == SharedBy::kDescriptor) damaged.splice(damaged.end(), kept_, one);
    }
  }
  for (Kept& kept : damaged) {
    const Status freed = free_shared(device_, std::move(kept.shared));
    if (!freed.ok()) LOG(kInfo, kAlloc, "an outbox was not freed: %s", freed.error().message.c_str());
  }
}

// One of which much stays lent is left alone.
OutboxStore::Kept* OutboxStore::take_free(SharedBy by) {
  const MutexLock lock(mutex_);
  for (Kept& kept : kept_) {
    if (kept.lent || (by == SharedBy::kTicket && kept.shared.by != by) ||
        kept.outbox->free_bytes() < bytes_of(place_) / 2)
      continue;
    kept.lent = true;
    return &kept;
  }
  return nullptr;
}

Result<Region> OutboxStore::make_on_device(Kept& kept, SharedBy by) {
  kept.shared = TRY(allocate_shared(device_, bytes_of(place_), by));
  return Region{kept.shared.memory, kept.shared.bytes, {mem_new_id(), 0}, device_.info().index};
}

Result<Region> OutboxStore::make_on_host(Kept& kept) {
  const uint64_t bytes = bytes_of(place_);
  kept.segment = TRY(Segment::create("trestle-outbox", bytes, false));
  TRY(device_.pin(kept.segment.data(), bytes));
  return Region{kept.segment.data(), bytes, {mem_new_id(), 0}, kHostMemory};
}

Result<OutboxStore::Kept*> OutboxStore::make(SharedBy by) {
  std::list<Kept> made(1);
  Kept& kept = made.front();
  const Region region = TRY(place_ == SharedPlace::kDevice ? make_on_device(kept, by) : make_on_host(kept));
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

MemoryAddress OutboxStore::address_of(const Kept& kept) {
  const Region& region = kept.outbox->region();
  const MemoryTicket ticket = region.on_device() ? kept.shared.ticket : ticket_of(kept.segment);
  return {kept.shared.by, ticket, region.share.id, kept.nonce, region.bytes, 0};
}

Result<OutboxStore::Lent> OutboxStore::lend(SharedBy by) {
  free_damaged();
  Kept* kept = take_free(by);
  if (kept == nullptr) kept = TRY(make(by));
  std::shared_ptr<Outbox> outbox(kept->outbox.get(), [this, kept](Outbox*) { take_back(*kept); });
  return Lent{std::move(outbox), address_of(*kept), kept->shared.descriptor.get()};
}

}  // namespace trestle
