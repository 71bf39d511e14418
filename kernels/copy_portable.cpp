// Copies for builds without Highway. The C library's memcpy chooses how it stores large blocks.
#include <cstring>

#include "kernels/copy.h"

namespace trestle {

void copy(std::byte* dst, const std::byte* src, size_t bytes, bool /*streaming*/) {
  if (bytes > 0 && dst != src) std::memcpy(dst, src, bytes);
}

}  // namespace trestle
