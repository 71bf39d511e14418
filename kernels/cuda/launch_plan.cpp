#include "kernels/cuda/launch_plan.h"

#include <algorithm>
#include <array>

#include "kernels/cuda/board.h"

namespace trestle::kernels {

namespace {

constexpr std::array<uint32_t, kCudaSourceVariants - 1> kKnownSources = {2, 4, 8};
constexpr uint32_t kLoadsTogether = 8;  // of a thread, as in reduce.cu

uint64_t beyond(const void* buffer, uint32_t boundary) {
  return reinterpret_cast<uintptr_t>(buffer) % boundary;
}

uint64_t divided_up(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

}  // namespace

PackedRange packed_range(std::span<const void* const> buffers, uint64_t elements, uint32_t element_bytes) {
  PackedRange range;
  range.elements = elements;
  range.head = elements;
  const uint64_t first = beyond(buffers.front(), kPackBytes);
  const bool alike =
      std::all_of(buffers.begin(), buffers.end(), [&](const void* b) { return beyond(b, kPackBytes) == first; });
  range.elements_are_aligned =
      std::all_of(buffers.begin(), buffers.end(), [&](const void* b) { return beyond(b, element_bytes) == 0; });
  if (!alike || range.elements_are_aligned == 0) return range;
  const uint64_t head = (kPackBytes - first) % kPackBytes / element_bytes;
  if (head >= elements) return range;
  range.head = head;
  range.packs = (elements - head) * element_bytes / kPackBytes;
  return range;
}

namespace {

// A number is in how many bytes the buffers, and the rows of each, differ: its lowest bits count.
PackedRange packed_bytes(const void* first, uint64_t difference, uint64_t bytes) {
  PackedRange range;
  range.elements = bytes;
  range.elements_are_aligned = 1;
  while (difference % range.pack_bytes != 0) range.pack_bytes /= 2;
  range.head = std::min((range.pack_bytes - beyond(first, range.pack_bytes)) % range.pack_bytes, bytes);
  range.packs = (bytes - range.head) / range.pack_bytes;
  return range;
}

uint64_t difference_of(const void* a, const void* b) {
  return reinterpret_cast<uintptr_t>(a) - reinterpret_cast<uintptr_t>(b);
}

}  // namespace

PackedRange packed_copy(const void* dst, const void* src, uint64_t bytes) {
  return packed_bytes(dst, difference_of(dst, src), bytes);
}

PackedRange packed_rows(const CudaCopy& copy, uint64_t row_bytes) {
  const uint64_t strides = copy.rows > 1 ? copy.dst_stride | copy.src_stride : 0;
  return packed_bytes(copy.dst, difference_of(copy.dst, copy.src) | strides, row_bytes);
}

uint32_t blocks_for(const PackedRange& range, uint32_t per_pack, uint32_t together, uint32_t most) {
  const uint64_t for_packs = divided_up(range.packs, static_cast<uint64_t>(kThreadsPerBlock) * together);
  const uint64_t for_singles = divided_up(range.elements - range.packs * per_pack, kThreadsPerBlock);
  return static_cast<uint32_t>(std::clamp<uint64_t>(std::max(for_packs, for_singles), 1, std::max(most, 1u)));
}

uint32_t source_variant(uint32_t sources) {
  const auto* const known = std::find(kKnownSources.begin(), kKnownSources.end(), sources);
  return static_cast<uint32_t>(known - kKnownSources.begin());
}

uint32_t packs_together(uint32_t variant) {
  return variant < kKnownSources.size() ? kLoadsTogether / kKnownSources[variant] : 1;
}

namespace {

std::string folding_name(ReduceOp op) {
  return to_string(op == ReduceOp::kAvg ? ReduceOp::kSum : op);
}

}  // namespace

std::string reduce_kernel(ReduceOp op, uint32_t variant) {
  return folding_name(op) + (variant < kKnownSources.size() ? "_" + std::to_string(kKnownSources[variant]) : "_any");
}

std::string board_kernel(ReduceOp op) {
  return "board_" + folding_name(op);
}

// Few units per thread: the time is that of the loads that follow each other.
uint32_t board_blocks(uint64_t bytes, uint32_t most) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(divided_up(board_units(bytes), kBoardDataThreads), 1, std::max(most, 1u)));
}

}  // namespace trestle::kernels
