// Halves: how halving-doubling and recursive doubling divide a group of any size. Pure function, any thread;
// src/algorithms only.
//
// A group [low, high) is cut into a lower half [low, middle) and an upper half [middle, high). If the size is odd, the
// lower half is larger by one rank. Rank low+i exchanges with rank middle+i. In an odd group the last rank of the lower
// half (middle-1) has no partner and is called the odd one. Then each half is a group of its own, until single ranks
// are left.
//
//   5 ranks:   0 1 2 | 3 4     0-3, 1-4, odd one 2
//              0 1 | 2  3 | 4  0-2, odd one 1; 3-4
//              0 | 1           0-1
#pragma once

#include <array>
#include <cstdint>

namespace trestle {

struct Halves {
  int32_t low = 0;
  int32_t middle = 0;
  int32_t high = 0;

  uint32_t lower_size() const { return static_cast<uint32_t>(middle - low); }
  uint32_t upper_size() const { return static_cast<uint32_t>(high - middle); }
  bool has_odd_one() const { return lower_size() > upper_size(); }
  int32_t odd_one() const { return middle - 1; }
  bool is_upper(int32_t rank) const { return rank >= middle; }
  bool is_odd_one(int32_t rank) const { return has_odd_one() && rank == odd_one(); }
  // For a rank that is not the odd one.
  int32_t partner(int32_t rank) const { return is_upper(rank) ? rank - middle + low : rank - low + middle; }
};

// The groups that contain a rank, largest first; at most ceil(log2(n)) of them.
struct HalvesPath {
  std::array<Halves, 32> groups;
  uint32_t count = 0;
};
HalvesPath halves_of(int32_t group_size, int32_t rank);

// Number of consecutive messages when all groups merge from the smallest to the largest (or split, in reverse). That is
// ceil(log2(n)), or one less for some n (5, 9, 10, 17 ...): there the ranks that have been the odd one are a step
// ahead, which makes up for the longer chain.
uint32_t halves_steps(int32_t group_size);

}  // namespace trestle
