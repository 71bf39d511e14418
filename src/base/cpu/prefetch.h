// Asks the processor to fetch memory that is used soon. Any thread; memory that is gone by then does no harm.
#pragma once

#include <cstddef>

namespace trestle {

// All cache lines of the object.
template <class T>
void prefetch(const T& object) {
  constexpr size_t kLine = 64;
  const char* const begin = reinterpret_cast<const char*>(&object);
  for (size_t at = 0; at < sizeof(T); at += kLine) __builtin_prefetch(begin + at, 1);
  __builtin_prefetch(begin + sizeof(T) - 1, 1);  // the object may begin in the midst of a line
}

}  // namespace trestle
