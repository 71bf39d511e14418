// Multiplies elements by one number, for the contributions to a pre-multiplied sum or to an average. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace trestle {

// dst[i] = src[i] * *scalar, rounded like a product of two sources (kernels/reduce.h). dst is equal to src or disjoint
// from it. scalar: one element, outside dst. Any alignment.
void scale(std::byte* dst, const std::byte* src, size_t elements, DataType type, const void* scalar);

// What an average over `ranks` does first to small floats that have been widened (ReduceSpec::average_over): multiplies
// them by 1/ranks. Then they are only added.
void scale_to_share(float* values, size_t elements, uint32_t ranks);

}  // namespace trestle
