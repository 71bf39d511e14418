// Asks the processor to fetch memory that is used soon. Any thread; memory that is gone by then does no harm.
#pragma once

#include <cstddef>

namespace trestle {

// All cache lines of [begin, end). A processor keeps track of about ten lines that are on their way: what is accessed
// behind more of them waits for the first ones.
inline void prefetch(const void* begin, const void* end) {
  constexpr size_t kLine = 64;
  const char* const last = static_cast<const char*>(end) - 1;
  for (const char* at = static_cast<const char*>(begin); at < last; at += kLine) __builtin_prefetch(at, 1);
  __builtin_prefetch(last, 1);  // the range may begin in the midst of a line
}

}  // namespace trestle
