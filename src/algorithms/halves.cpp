#include "algorithms/halves.h"

#include <algorithm>
#include <vector>

namespace trestle {

namespace {

Halves cut(int32_t low, int32_t high) {
  return {low, low + (high - low + 1) / 2, high};
}

// By rank: the length of the longest chain of messages that ends there when the ranks [low, high) have merged.
void merge(int32_t low, int32_t high, std::vector<uint32_t>& chain) {
  if (high - low <= 1) return;
  const Halves group = cut(low, high);
  merge(low, group.middle, chain);
  merge(group.middle, high, chain);
  const uint32_t of_last = chain[static_cast<size_t>(high - 1)];
  for (int32_t upper = group.middle; upper < high; ++upper) {
    uint32_t& a = chain[static_cast<size_t>(upper)];
    uint32_t& b = chain[static_cast<size_t>(group.partner(upper))];
    const uint32_t before = a;
    a = std::max(a, b + 1);
    b = std::max(b, before + 1);
  }
  if (!group.has_odd_one()) return;
  uint32_t& odd = chain[static_cast<size_t>(group.odd_one())];
  odd = std::max(odd, of_last + 1);
}

}  // namespace

HalvesPath halves_of(int32_t group_size, int32_t rank) {
  HalvesPath path;
  int32_t low = 0;
  int32_t high = group_size;
  while (high - low > 1) {
    const Halves group = cut(low, high);
    path.groups[path.count++] = group;
    (group.is_upper(rank) ? low : high) = group.middle;
  }
  return path;
}

uint32_t halves_steps(int32_t group_size) {
  std::vector<uint32_t> chain(static_cast<size_t>(group_size));
  merge(0, group_size, chain);
  return *std::max_element(chain.begin(), chain.end());
}

}  // namespace trestle
