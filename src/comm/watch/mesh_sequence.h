// Sequence numbers of a communicator's all-gathers and barriers over its control mesh.
#pragma once

#include <cstdint>

namespace trestle {

inline constexpr uint64_t kFinalizeBarrier = 0;

// Numbers of all-gathers. Those of bootstrap begin at 2^62. Every split takes two.
constexpr uint64_t sequence_of_split(uint64_t number, uint64_t half) {
  return (uint64_t{1} << 61) + 2 * number + half;
}

}  // namespace trestle
