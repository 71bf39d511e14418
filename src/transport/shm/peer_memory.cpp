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
  entries_.push_back({id, std::move(segment)});
  return {};
}

const std::byte* PeerMemory::resolve(const MappedPiece& piece) const {
  const Entry* const entry = find(piece.id);
  if (entry == nullptr || piece.offset > entry->segment.bytes()) return nullptr;
  if (piece.bytes > entry->segment.bytes() - piece.offset) return nullptr;
  return entry->segment.data() + piece.offset;
}

void PeerMemory::forget(uint64_t id) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].id != id) continue;
    std::swap(entries_[i], entries_.back());
    entries_.pop_back();
    return;
  }
}

}  // namespace trestle
