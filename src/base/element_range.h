// ElementRange: consecutive elements of a vector. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trestle {

struct ElementRange {
  uint64_t offset = 0;  // elements
  uint64_t count = 0;
};

// The r-th of n equal ranges of `elements`. Where n does not divide, the first ranges are one element longer.
inline ElementRange nth_range(uint64_t elements, uint32_t n, uint32_t r) {
  const uint64_t base = elements / n;
  const uint64_t longer = elements % n;
  return {r * base + std::min<uint64_t>(r, longer), base + (r < longer ? 1 : 0)};
}

}  // namespace trestle
