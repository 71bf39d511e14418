// PeerMemory: the allocations of one peer that this rank has mapped.
//
// Owned by a pair of ranks in the transport, under its progress lock. A mapping lives until the peer reports that it
// freed the memory, or until the transport ends.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "transport/shm/lane.h"

namespace trestle {

class PeerMemory {
 public:
  // Takes a descriptor from the peer. The memory is mapped for reading only.
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
