#include "sched/policy/chunk_sizes.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace trestle {

uint64_t chunk_granule(uint64_t bytes, uint32_t count, uint32_t element_bytes, uint32_t all_blocks, bool whole_blocks) {
  const uint64_t element = element_bytes;
  const uint64_t blocks = all_blocks;
  static constexpr uint64_t kCacheLine = 64;
  static constexpr uint64_t kFewest = 4;  // granules per part; then parts differ by a quarter at most
  const uint64_t line = std::lcm(element, kCacheLine);
  const bool divides = bytes % (blocks * element) == 0;
  for (const uint64_t granule : {blocks * line, line, blocks * element}) {
    if (whole_blocks && granule % (blocks * element) != 0) continue;
    if (bytes / granule >= kFewest * count) return granule;
  }
  return whole_blocks && divides ? blocks * element : element;
}

std::vector<uint64_t> equal_chunks(uint64_t bytes, uint32_t count, uint32_t element_bytes, uint32_t blocks,
                                   bool whole_blocks) {
  CHECK(element_bytes > 0 && blocks > 0, "chunks of nothing");
  const uint64_t granule = chunk_granule(bytes, std::max(count, 1u), element_bytes, blocks, whole_blocks);
  const uint64_t units = (bytes + granule - 1) / granule;
  const uint64_t parts = std::max<uint64_t>(1, std::min<uint64_t>(count, units));
  std::vector<uint64_t> sizes(parts);
  for (uint64_t k = 0; k < parts; ++k) sizes[k] = (units / parts + (k < units % parts ? 1 : 0)) * granule;
  sizes.back() -= units * granule - bytes;
  return sizes;
}

}  // namespace trestle
