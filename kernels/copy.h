// Copies of blocks of memory on the CPU. Pure, any thread, nothing is allocated.
#pragma once

#include <cstddef>

namespace trestle {

// dst and src: `bytes` bytes, any alignment, disjoint or exactly equal.
// streaming: stores bypass the caches. This avoids reading dst's cache lines first and evicting other data. Use it for
// large blocks that are not read again soon, not for data that the next step reads. Ends with a store fence, so that a
// flag written afterwards is ordered.
void copy(std::byte* dst, const std::byte* src, size_t bytes, bool streaming);

}  // namespace trestle
