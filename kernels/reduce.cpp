#include "kernels/reduce.h"

#include "base/check.h"

namespace trestle {

void reduce(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, const ReduceSpec& spec) {
  CHECK(!sources.empty(), "a reduction needs at least one source");
  find_reduce(spec.type, spec.op)(dst, sources, elements, spec);
}

}  // namespace trestle
