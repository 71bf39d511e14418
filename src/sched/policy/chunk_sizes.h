// Sizes of equal chunks. Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace trestle {

// Cuts `bytes` into at most `count` parts, as equal as their granule allows. No part is empty, except if bytes is 0
// (then there is one part of 0). The granule is the largest of these of which every part has at least four: a cache
// line in each of `blocks` blocks, a cache line (unless `whole_blocks`), an element in each block, an element. The last
// part gets the remainder. whole_blocks: parts are slices of every block, and so multiples of blocks * element_bytes if
// `bytes` is one.
std::vector<uint64_t> equal_chunks(uint64_t bytes, uint32_t count, uint32_t element_bytes, uint32_t blocks,
                                   bool whole_blocks);

// The granule of equal_chunks.
uint64_t chunk_granule(uint64_t bytes, uint32_t count, uint32_t element_bytes, uint32_t blocks, bool whole_blocks);

}  // namespace trestle
