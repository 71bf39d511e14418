// Multiplying elements by one number: what a pre-multiplied sum does to a rank's contribution. Pure, any thread.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace trestle {

// dst[i] = src[i] * *scalar, rounded as a product of two sources is (kernels/reduce.h). dst equals src or is disjoint
// from it; scalar: one element, outside of dst. Any alignment.
void scale(std::byte* dst, const std::byte* src, size_t elements, DataType type, const void* scalar);

}  // namespace trestle
