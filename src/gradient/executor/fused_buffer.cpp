#include "gradient/executor/fused_buffer.h"

#include <algorithm>

namespace trestle {
namespace {

// The parts of a tensor are equal, except that they are rounded to whole elements.
FusedSpan span_of(const TensorEntry& tensor, const TensorParts& piece) {
  const auto at = [&](uint64_t part) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(tensor.count) * part / piece.parts);
  };
  return {piece.tensor, at(piece.first_part), 0, at(piece.end_part) - at(piece.first_part)};
}

template <class Layout, class TypeOf>
Layout& layout_of(std::vector<Layout>& layouts, DataType type, TypeOf type_of) {
  for (Layout& layout : layouts) {
    if (type_of(layout) == type) return layout;
  }
  layouts.emplace_back();
  type_of(layouts.back()) = type;
  return layouts.back();
}

}  // namespace

std::vector<FusedLayout> whole_layouts(const std::vector<TensorEntry>& tensors,
                                       const std::vector<TensorParts>& pieces) {
  std::vector<FusedLayout> layouts;
  for (const TensorParts& piece : pieces) {
    const TensorEntry& tensor = tensors[piece.tensor];
    FusedSpan span = span_of(tensor, piece);
    if (span.count == 0) continue;
    FusedLayout& layout = layout_of(layouts, tensor.type, [](FusedLayout& one) -> DataType& { return one.type; });
    span.in_buffer = layout.count;
    layout.count += span.count;
    layout.spans.push_back(span);
  }
  return layouts;
}

uint64_t shard_length(uint64_t count, uint32_t ranks) {
  return count / ranks + (count % ranks != 0 ? 1 : 0);
}

std::vector<ShardedLayout> sharded_layouts(const std::vector<TensorEntry>& tensors,
                                           const std::vector<TensorParts>& pieces, uint32_t ranks, uint32_t rank) {
  std::vector<ShardedLayout> layouts;
  for (const TensorParts& piece : pieces) {
    const TensorEntry& tensor = tensors[piece.tensor];
    ShardedLayout& layout =
        layout_of(layouts, tensor.type, [](ShardedLayout& one) -> DataType& { return one.whole.type; });
    const uint64_t length = shard_length(tensor.count, ranks);
    if (layout.block == 0) layout.first_tensor = piece.tensor;
    for (uint32_t r = 0; r < ranks; ++r) {
      const uint64_t begin = std::min(r * length, tensor.count);
      const uint64_t count = std::min(length, tensor.count - begin);
      // The length of a block is not known yet. So in_buffer counts from its block's beginning until the loop below.
      if (count > 0) layout.whole.spans.push_back({piece.tensor, begin, layout.block, count});
      if (count > 0 && r == rank) layout.own.push_back(layout.whole.spans.back());
    }
    layout.block += length;
  }
  for (ShardedLayout& layout : layouts) {
    layout.whole.count = layout.block * ranks;
    for (FusedSpan& span : layout.whole.spans) {
      span.in_buffer += span.in_tensor / shard_length(tensors[span.tensor].count, ranks) * layout.block;
    }
  }
  return layouts;
}

std::byte* own_memory(const std::vector<TensorEntry>& tensors, const FusedLayout& layout) {
  std::byte* first = nullptr;
  for (const FusedSpan& span : layout.spans) {
    std::byte* const memory = tensors[span.tensor].gradient;
    if (memory == nullptr) return nullptr;
    std::byte* const at = memory + span.in_tensor * size_of(layout.type);
    if (first == nullptr) first = at;
    if (at != first + span.in_buffer * size_of(layout.type)) return nullptr;
  }
  return first;
}

std::vector<FusedSpan> clipped(const std::vector<FusedSpan>& spans, uint64_t begin, uint64_t end) {
  std::vector<FusedSpan> parts;
  for (const FusedSpan& span : spans) {
    const uint64_t from = std::max(begin, span.in_buffer);
    const uint64_t to = std::min(end, span.in_buffer + span.count);
    if (from < to) parts.push_back({span.tensor, span.in_tensor + (from - span.in_buffer), from, to - from});
  }
  return parts;
}

}  // namespace trestle
