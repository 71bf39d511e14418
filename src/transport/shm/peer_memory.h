// PeerMemory: the allocations of one peer that this rank has mapped, and those of this rank that the peer was given.
//
// Owned by a pair of ranks in the transport, under its progress lock. Mappings live until the peer says that it freed
// the memory, or until the transport ends.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "transport/shm/lane.h"

namespace trestle {

class PeerMemory {
 public:
  // A descriptor from the peer. Mapped for reading only.
  Status adopt(uint64_t id, UniqueFd fd, uint64_t bytes);
  bool knows(uint64_t id) const { return find(id) != nullptr; }
  // nullptr: outside the allocation, or unknown.
  const std::byte* resolve(const MappedPiece& piece) const;
  void forget(uint64_t id);

 private:
  struct Entry {
    uint64_t id = 0;
    Segment segment;
  };
  const Entry* find(uint64_t id) const;

  std::vector<Entry> entries_;
  mutable size_t last_ = 0;
};

}  // namespace trestle
