#include "compress/ar_topk.h"

#include <cmath>

namespace trestle {

uint32_t star_root(uint64_t step, uint32_t workers) {
  return static_cast<uint32_t>(step % workers);
}

uint32_t var_root(std::span<const double> norms) {
  size_t root = 0;
  for (size_t rank = 1; rank < norms.size(); ++rank) {
    const bool first_nan = std::isnan(norms[rank]) && !std::isnan(norms[root]);
    if (first_nan || norms[rank] > norms[root]) root = rank;
  }
  return static_cast<uint32_t>(root);
}

}  // namespace trestle
