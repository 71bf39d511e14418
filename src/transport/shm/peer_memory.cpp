#include "transport/shm/peer_memory.h"

#include <utility>

namespace trestle {

const PeerMemory::Entry* PeerMemory::find(uint64_t id) const {
  if (last_ < entries_.size() && entries_[last_].id == id) return &entries_[last_];
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].id != id) continue;
    last_ = i;
    return &entries_[i];
  }
  return nullptr;
}

Status PeerMemory::adopt(uint64_t id, UniqueFd fd, uint64_t bytes) {
  if (knows(id)) return Error{Code::kRemoteError, "sent the same memory twice"};
  Segment segment = TRY(Segment::adopt(std::move(fd), bytes, false));
  segment.close_fd();
  const std::byte* const base = segment.data();
  const uint64_t mapped = segment.bytes();
  entries_.push_back({id, base, mapped, nullptr, std::move(segment)});
  return {};
}

void PeerMemory::set_outbox(const Region& outbox) {
  entries_.push_back({outbox.share.id, outbox.base, outbox.bytes, &outbox, {}});
}

PeerMemory::Place PeerMemory::resolve(const MappedPiece& piece) const {
  const Entry* const entry = find(piece.id);
  if (entry == nullptr || piece.offset > entry->bytes) return {};
  if (piece.bytes > entry->bytes - piece.offset) return {};
  return {entry->base + piece.offset, entry->outbox};
}

PeerMemory::Place PeerMemory::in_outbox(bool on_device, uint64_t offset, uint64_t bytes) const {
  for (const Entry& entry : entries_) {
    if (entry.outbox != nullptr && entry.outbox->on_device() == on_device) return resolve({entry.id, offset, bytes});
  }
  return {};
}

void PeerMemory::forget(uint64_t id) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].id != id || entries_[i].outbox != nullptr) continue;
    std::swap(entries_[i], entries_.back());
    entries_.pop_back();
    return;
  }
}

}  // namespace trestle
