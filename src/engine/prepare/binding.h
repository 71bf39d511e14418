// Maps units of an operation's vector to pieces of buffers, and blocks of a plan's steps to bytes. Used only while
// preparing. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/prepare/prepared.h"
#include "sched/model/segments.h"

namespace trestle {

// Where units lie: at their own offset in a buffer that holds the whole vector, in a buffer that holds one shard, or
// packed in staging.
class Placement {
 public:
  Placement() = default;
  static Placement direct(BufferId buffer, uint32_t element_bytes);
  // The buffer begins with element shard.offset of the vector.
  static Placement shard(BufferId buffer, uint32_t element_bytes, ElementRange shard);
  // Shard u begins at element starts[u] of the buffer and at element shards[u].offset of the vector.
  static Placement displaced(BufferId buffer, uint32_t element_bytes, const std::vector<ElementRange>& shards,
                             const std::vector<uint64_t>& starts);
  // Units in the order of append(), starting at byte `offset` of staging.
  static Placement packed(uint32_t element_bytes, uint64_t offset);
  uint64_t append(int32_t unit, ElementRange range);  // of the vector; returns the bytes that the unit takes
  // Byte `offset` of staging is element `first` of the vector; the elements after it lie as in the vector.
  static Placement staged(uint32_t element_bytes, uint64_t offset, uint64_t first);

  // range: of the vector, the whole unit or a part of it.
  PieceRef locate(int32_t unit, ElementRange range) const;
  // Whether a phase that reads here and writes to `other` works in place: both use the same buffer, or the send and
  // receive buffers of an operation in place.
  bool same_memory(const Placement& other, bool operation_in_place) const;

 private:
  BufferId buffer_ = BufferId::kSend;
  uint32_t element_bytes_ = 1;
  uint64_t origin_ = 0;  // the element of the vector at the buffer's start, or at byte begin_ of staging
  uint64_t begin_ = 0;
  bool packed_ = false;
  uint64_t next_ = 0;
  std::vector<uint64_t> unit_offset_;  // packed: where element 0 of the vector would be, by unit, modulo 2^64
  std::vector<uint64_t> shift_;        // displaced: elements to add, by unit, modulo 2^64
};

// Builds a BlockTable. Joins neighbouring pieces.
class TableBuilder {
 public:
  explicit TableBuilder(const Placement& place) : place_(place) {}
  void open_block() { table_.first.push_back(static_cast<uint32_t>(table_.pieces.size())); }
  void add(int32_t unit, ElementRange range);
  BlockTable take();

 private:
  Placement place_;
  BlockTable table_;
};

// How finely the data of a phase may be scattered. All ranks of the group agree on it. They need not agree on the
// joined pieces of one rank.
struct Scatter {
  uint64_t units = 1;           // pieces of all blocks together, before any are joined
  uint64_t shortest_bytes = 1;  // of a unit that is not empty
};

// Fills scratch, segment sizes, step sizes and byte dependencies of a phase whose plan, blocks and peers are set. Adds
// the scratch to staging_bytes. rule: the preferred segment size; it is reduced where a segment would have more pieces
// than a message may have.
void bind_steps(PreparedPhase& phase, const SegmentRule& rule, const Scatter& scatter, uint64_t& staging_bytes);

}  // namespace trestle
