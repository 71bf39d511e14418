// Copies of blocks of memory on the CPU. Pure, any thread, nothing is allocated.
#pragma once

#include <cstddef>

namespace trestle {

// dst and src: `bytes` bytes, any alignment, disjoint or exactly equal.
// streaming: store past the caches (saves reading dst's lines first and keeps them from evicting others); right for
// large blocks that are not read again soon, wrong for anything that the next step reads. Ends with a store fence, so
// that a following flag is ordered.
void copy(std::byte* dst, const std::byte* src, size_t bytes, bool streaming);

}  // namespace trestle
