// From units of an operation's vector to pieces of buffers, and from blocks of a plan's steps to bytes. Used while
// preparing only. Pure.
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
  // Shard u of the vector begins at element starts[u] of the buffer, where the vector has it at shards[u].offset.
  static Placement displaced(BufferId buffer, uint32_t element_bytes, const std::vector<ElementRange>& shards,
                             const std::vector<uint64_t>& starts);
  // Units in the order of append(), from byte `offset` of staging on.
  static Placement packed(uint32_t element_bytes, uint64_t offset);
  uint64_t append(int32_t unit, uint64_t elements);  // returns the bytes that the unit takes
  // Byte `offset` of staging is element `first` of the vector; what follows lies as in the vector.
  static Placement staged(uint32_t element_bytes, uint64_t offset, uint64_t first);

  PieceRef locate(int32_t unit, ElementRange range) const;
  // Whether a phase from here to there works in place: the same buffer, or send and receive of an operation in place.
  bool same_memory(const Placement& other, bool operation_in_place) const;

 private:
  BufferId buffer_ = BufferId::kSend;
  uint32_t element_bytes_ = 1;
  uint64_t origin_ = 0;  // element of the vector at the buffer's start, or at byte begin_ of staging
  uint64_t begin_ = 0;
  bool packed_ = false;
  uint64_t next_ = 0;
  std::vector<uint64_t> unit_offset_;  // packed: by unit
  std::vector<uint64_t> shift_;        // displaced: elements to add, by unit, modulo 2^64
};

// Builds a BlockTable, joining neighbouring pieces.
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

// How finely the data of a phase may be scattered: agreed by all ranks of the group, unlike the joined pieces of one of
// them.
struct Scatter {
  uint64_t units = 1;           // pieces of all blocks together, before any are joined
  uint64_t shortest_bytes = 1;  // of a unit that is not empty
};

// Fills scratch, segment sizes, step sizes and byte dependencies of a phase whose plan, blocks and peers are set. Adds
// the scratch to staging_bytes. rule: preferred size; made smaller where a segment would have more pieces than a
// message may have.
void bind_steps(PreparedPhase& phase, const SegmentRule& rule, const Scatter& scatter, uint64_t& staging_bytes);

}  // namespace trestle
