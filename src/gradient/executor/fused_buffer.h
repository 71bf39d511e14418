// Layouts of fused buffers: a buffer has the elements of one message that are of one type, and the layout says which
// elements of which tensors they are.
//
// Value types and pure functions. A layout has no memory yet. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradient/executor/step_messages.h"
#include "gradient/executor/tensor_table.h"

namespace trestle {

// Elements of a tensor that lie together in the buffer.
struct FusedSpan {
  uint32_t tensor = 0;
  uint64_t in_tensor = 0;  // its first element there
  uint64_t in_buffer = 0;
  uint64_t count = 0;
  bool operator==(const FusedSpan&) const = default;
};

struct FusedLayout {
  DataType type = DataType::kFloat32;
  uint64_t count = 0;  // elements of the buffer; there may be gaps between the spans
  std::vector<FusedSpan> spans;
};

// Lays the pieces out one after the other, in one layout for each type that they have.
std::vector<FusedLayout> whole_layouts(const std::vector<TensorEntry>& tensors, const std::vector<TensorParts>& pieces);

// Every tensor is cut into `ranks` shards of equal length, the last ones perhaps shorter. So any run of tensors can
// travel as one reduce-scatter or all-gather: the block of a rank has its shards of the run, one after the other.
struct ShardedLayout {
  FusedLayout whole;           // the blocks of all ranks
  uint64_t block = 0;          // elements of a block
  uint32_t first_tensor = 0;   // its shard is the first one of each block
  std::vector<FusedSpan> own;  // this rank's shards; in_buffer counts from the beginning of its block
};
uint64_t shard_length(uint64_t count, uint32_t ranks);
std::vector<ShardedLayout> sharded_layouts(const std::vector<TensorEntry>& tensors,
                                           const std::vector<TensorParts>& pieces, uint32_t ranks, uint32_t rank);

// The address at which all spans lie together in the tensors' own memory, in the order of the buffer; else nullptr.
std::byte* own_memory(const std::vector<TensorEntry>& tensors, const FusedLayout& layout);

// The part of `spans` that lies in [begin, end) of the buffer.
std::vector<FusedSpan> clipped(const std::vector<FusedSpan>& spans, uint64_t begin, uint64_t end);

}  // namespace trestle
