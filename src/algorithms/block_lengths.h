// BlockLengths: the lengths of the blocks of a phase with one block per rank, where they are not equal. A value, any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trestle {

class BlockLengths {
 public:
  // By index in the group, in any unit; the sum must be less than 2^63.
  explicit BlockLengths(std::span<const uint64_t> lengths) : before_(lengths.size() + 1, 0) {
    for (size_t i = 0; i < lengths.size(); ++i) before_[i + 1] = before_[i] + lengths[i];
  }
  int32_t ranks() const { return static_cast<int32_t>(before_.size()) - 1; }
  uint64_t total() const { return before_.back(); }
  // The total length of the blocks [first, last).
  uint64_t range(int32_t first, int32_t last) const {
    return before_[static_cast<size_t>(last)] - before_[static_cast<size_t>(first)];
  }
  uint64_t of(int32_t block) const { return range(block, block + 1); }

 private:
  std::vector<uint64_t> before_;
};

// The work of the busiest rank in such a phase, in the unit of the lengths: AlgorithmCost's two fractions.
struct BlockLoad {
  uint64_t sent = 0;     // or received
  uint64_t reduced = 0;  // read in reductions, not counting its own
};

}  // namespace trestle
