// PeerMemory: the memory of one peer that this rank has mapped: its allocations, and its outboxes.
//
// Owned by a pair of ranks in the transport, under its progress lock. The mapping of an allocation lives until the peer
// reports that it freed the memory, or until the transport ends. That of an outbox is not ours.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "memory/region.h"
#include "transport/shm/lane.h"

namespace trestle {

class PeerMemory {
 public:
  struct Place {
    const std::byte* data = nullptr;  // nullptr: outside the memory, or unknown
    const Region* outbox = nullptr;   // where it lies; only a device may read it. nullptr: in an allocation
  };

  // Takes a descriptor from the peer. The memory is mapped for reading only.
  Status adopt(uint64_t id, UniqueFd fd, uint64_t bytes);
  // Outlives this object.
  void set_outbox(const Region& outbox);
  bool knows(uint64_t id) const { return find(id) != nullptr; }
  Place resolve(const MappedPiece& piece) const;
  // In the outbox of the peer's device, or in that of host memory.
  Place in_outbox(bool on_device, uint64_t offset, uint64_t bytes) const;
  // Of an allocation; an outbox stays.
  void forget(uint64_t id);

 private:
  struct Entry {
    uint64_t id = 0;
    const std::byte* base = nullptr;
    uint64_t bytes = 0;
    const Region* outbox = nullptr;
    Segment segment;  // if it is no outbox
  };
  const Entry* find(uint64_t id) const;

  std::vector<Entry> entries_;
  mutable size_t last_ = 0;
};

}  // namespace trestle
