// UnevenBlocks: the blocks of a v-variant, as the caller gave them. Values, any thread; a call and its copies share one
// object.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/types.h"

namespace trestle {

// The blocks of one buffer, by rank, in elements.
struct BlockList {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> starts;
  bool operator==(const BlockList&) const = default;
};

// Which lists a v-variant has:
//   all-gather-v      received
//   reduce-scatter-v  sent, one after the other
//   all-to-all-v      both
//   gather-v          received, at the root
//   scatter-v         sent, at the root
// A buffer that holds one block (PrepareRequest::count elements, from its start on) or none has an empty list.
struct UnevenBlocks {
  BlockList sent;
  BlockList received;
  bool operator==(const UnevenBlocks&) const = default;
};

// A shared pointer that is compared by value; null where all blocks are equal.
class SharedBlocks {
 public:
  SharedBlocks() = default;
  explicit SharedBlocks(UnevenBlocks blocks) : blocks_(std::make_shared<const UnevenBlocks>(std::move(blocks))) {}
  explicit operator bool() const { return blocks_ != nullptr; }
  const UnevenBlocks& operator*() const { return *blocks_; }
  const UnevenBlocks* operator->() const { return blocks_.get(); }
  bool operator==(const SharedBlocks& other) const {
    if (blocks_ == nullptr || other.blocks_ == nullptr) return blocks_ == other.blocks_;
    return blocks_ == other.blocks_ || *blocks_ == *other.blocks_;
  }

 private:
  std::shared_ptr<const UnevenBlocks> blocks_;
};

// The list whose counts all ranks know (has_known_blocks).
inline const BlockList& known_blocks(const UnevenBlocks& blocks, Collective collective) {
  return row_of(collective).received.extent == BufferExtent::kList ? blocks.received : blocks.sent;
}
inline uint64_t hash_of_counts(const UnevenBlocks& blocks, Collective collective) {
  Hasher hasher;
  for (const uint64_t count : known_blocks(blocks, collective).counts) hasher.integer(count);
  return hasher.digest();
}

}  // namespace trestle
