// Copies for builds without Highway: the C library's, which chooses its own way of storing large blocks.
#include <cstring>

#include "kernels/copy.h"

namespace trestle {

void copy(std::byte* dst, const std::byte* src, size_t bytes, bool /*streaming*/) {
  if (bytes > 0 && dst != src) std::memcpy(dst, src, bytes);
}

}  // namespace trestle
