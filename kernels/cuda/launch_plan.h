// Decides on the host how the kernels of kernels/cuda are launched: which elements are moved in packs, which kernel
// serves a reduction, and how many blocks it gets. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/types.h"
#include "kernels/cuda/parameters.h"

namespace trestle::kernels {

inline constexpr uint32_t kThreadsPerBlock = 256;  // what the kernels are compiled for
inline constexpr uint32_t kCudaSourceVariants = 4;

// Of buffers with `elements` elements of `element_bytes` each (a power of two up to 16), at any addresses. Packs are
// possible if all addresses are equally far from a multiple of 16, by whole elements.
PackedRange packed_range(std::span<const void* const> buffers, uint64_t elements, uint32_t element_bytes);

// For a copy of `bytes` bytes: packs of the largest size for which the buffers are alike, of one byte at least.
PackedRange packed_copy(const void* dst, const void* src, uint64_t bytes);
// For rows of `row_bytes` bytes: also the strides are multiples of a pack then.
PackedRange packed_rows(const CudaCopy& copy, uint64_t row_bytes);

// Blocks that have work, at most `most`, at least one. per_pack: elements of a pack; together: packs that a thread
// moves at once.
uint32_t blocks_for(const PackedRange& range, uint32_t per_pack, uint32_t together, uint32_t most);

// The variant of a reduction's kernel for this number of sources: 0, 1, 2 are made for 2, 4, 8; 3 serves any.
uint32_t source_variant(uint32_t sources);
// How many packs of each source a thread of it loads at once.
uint32_t packs_together(uint32_t variant);
// Its name in the image of the type: "sum_4", "max_any". kAvg has kSum's.
std::string reduce_kernel(ReduceOp op, uint32_t variant);

// The board of devices (board.h). Its kernel in the image of the type: "board_sum". kAvg has kSum's.
std::string board_kernel(ReduceOp op);
// Blocks of threads for blocks of `bytes` bytes, at most `most`. The same on all ranks where `most` is.
uint32_t board_blocks(uint64_t bytes, uint32_t most);

}  // namespace trestle::kernels
