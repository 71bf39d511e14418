#include "kernels/scale.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/elements.h"
#include "kernels/reduce.h"

namespace trestle {

// Multiplies by a second source in which the scalar is repeated, so that the reduction loops can be used. A few pages
// of that source stay in the first-level cache.
void scale(std::byte* dst, const std::byte* src, size_t elements, DataType type, const void* scalar) {
  alignas(64) std::array<std::byte, 4096> factors;
  const size_t element_bytes = size_of(type);
  const size_t block = std::min(elements, factors.size() / element_bytes);
  for (size_t i = 0; i < block; ++i) std::memcpy(factors.data() + i * element_bytes, scalar, element_bytes);
  const ReduceFunction product = find_reduce(type, ReduceOp::kProd);
  const ReduceSpec spec{type, ReduceOp::kProd, 0, false};
  for (size_t begin = 0; begin < elements; begin += block) {
    const std::array<const std::byte*, 2> sources = {src + begin * element_bytes, factors.data()};
    product(dst + begin * element_bytes, sources, std::min(block, elements - begin), spec);
  }
}

void scale_to_share(float* values, size_t elements, uint32_t ranks) {
  auto* const bytes = reinterpret_cast<std::byte*>(values);
  const float share = kernels::average_factor(ranks, false);
  scale(bytes, bytes, elements, DataType::kFloat32, &share);
}

}  // namespace trestle
