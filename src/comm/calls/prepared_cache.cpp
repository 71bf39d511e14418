#include "comm/calls/prepared_cache.h"

#include <utility>

namespace trestle {

namespace {

constexpr size_t kMostUnpinned = 256;

}  // namespace

size_t PreparedCache::Hash::operator()(const PreparedKey& key) const {
  const PrepareRequest& r = key.request;
  uint64_t h = r.count * 0x9e3779b97f4a7c15ull;
  h ^= static_cast<uint64_t>(r.collective) << 56 | static_cast<uint64_t>(r.type) << 48 |
       static_cast<uint64_t>(r.op) << 40 | static_cast<uint64_t>(r.half) << 34 |
       static_cast<uint64_t>(r.in_place) << 33 | static_cast<uint64_t>(key.sending) << 32;
  h ^= (static_cast<uint64_t>(r.root) << 16 ^ static_cast<uint64_t>(r.peer)) * 0xc2b2ae3d27d4eb4full;
  if (r.blocks) {
    Hasher hasher;
    for (const BlockList* list : {&r.blocks->sent, &r.blocks->received}) {
      for (const uint64_t count : list->counts) hasher.integer(count);
      for (const uint64_t start : list->starts) hasher.integer(start);
    }
    h ^= hasher.digest();
  }
  h ^= r.options.hash() ^ reinterpret_cast<uintptr_t>(r.custom.get());
  return h ^ (h >> 31);
}

Result<PreparedCache::Entry> PreparedCache::get(const PreparedKey& key, const std::function<Result<Entry>()>& build) {
  const MutexLock lock(mutex_);
  return TRY(find_or_build(key, build))->prepared;
}

Result<PreparedCache::Entry> PreparedCache::pin(const PreparedKey& key, const std::function<Result<Entry>()>& build) {
  const MutexLock lock(mutex_);
  Slot* slot = TRY(find_or_build(key, build));
  if (slot->pins++ == 0) ++pinned_;
  return slot->prepared;
}

void PreparedCache::unpin(const PreparedKey& key) {
  const MutexLock lock(mutex_);
  const auto found = slots_.find(key);
  CHECK(found != slots_.end() && found->second.pins != 0, "a prepared call was unpinned that is not pinned");
  if (--found->second.pins == 0) --pinned_;
}

Result<PreparedCache::Slot*> PreparedCache::find_or_build(const PreparedKey& key,
                                                          const std::function<Result<Entry>()>& build) {
  if (last_ != nullptr && last_->first == key) return &last_->second;
  if (const auto found = slots_.find(key); found != slots_.end()) {
    last_ = &*found;
    return &last_->second;
  }
  Entry made = TRY(build());
  if (slots_.size() - pinned_ >= kMostUnpinned) drop_unpinned([](const PreparedKey&) { return true; });
  last_ = &*slots_.emplace(key, Slot{std::move(made), 0}).first;
  return &last_->second;
}

void PreparedCache::drop(const CustomOp* op) {
  const MutexLock lock(mutex_);
  drop_unpinned([op](const PreparedKey& key) { return key.request.custom.get() == op; });
}

template <class Predicate>
void PreparedCache::drop_unpinned(Predicate&& which) {
  last_ = nullptr;
  std::erase_if(slots_, [&](const auto& entry) {
    if (entry.second.pins != 0 || !which(entry.first)) return false;
    forget_(entry.second.prepared.get());
    return true;
  });
}

}  // namespace trestle
