// Multiplies elements by one number, for the contributions to a pre-multiplied sum. Pure, any thread.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace trestle {

// dst[i] = src[i] * *scalar, rounded like a product of two sources (kernels/reduce.h). dst is equal to src or disjoint
// from it. scalar: one element, outside dst. Any alignment.
void scale(std::byte* dst, const std::byte* src, size_t elements, DataType type, const void* scalar);

}  // namespace trestle
