// Data for which the right answer of a collective is known in closed form and does not depend on the order of
// additions.
//
// Element i of rank r is a function of (seed, i, r, number of ranks). The expected result of element i costs as much as
// one element, however many ranks there are. For each element the ranks take rotated positions q = (r + shift(i)) mod
// n, and then:
//   sum, avg (floats): pairs of positions hold +a and -a, position 0 also holds the total; |partial sums| fit the
//                      type's digits, so every partial sum is exact in any order
//   avg (8, 16 bits):  position 0 holds the total, the others 0: shares are rounded before they are added
//   sum (integers):    g + r*h, which wraps around
//   mulsum:            the same; even ranks multiply by 1, odd ones by 2; floats of odd ranks are half of what they add
//   avg (integers):    positions 0 and 1 hold x and y, the others 0
//   prod (floats):     position 0 holds any value in [1, 2), some others 2 or 1/2 in turn, the rest 1; signs vary
//   prod (integers):   odd numbers, which wrap around
//   max, min:          position 0 holds any finite value, the others are 1..32 bit patterns away from it
// Copies use random bits of (seed, i, source rank). Nothing here allocates or keeps state; any thread may call.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>

namespace trestle::perf {

constexpr int kMaxPatternRanks = 65535;  // the rotation is computed in 16 bits

struct Reduction {
  trestleDataType_t type;
  trestleRedOp_t op;
  int nranks;  // 1..kMaxPatternRanks
  uint64_t seed;
};

// Writes elements [first, first + count) of rank `rank`'s contribution to out[0..count).
void fill_contribution(const Reduction& reduction, int rank, size_t first, size_t count, void* out);
// Writes elements [first, first + count) of the reduced array to out[0..count).
void fill_reduced(const Reduction& reduction, size_t first, size_t count, void* out);
// Writes elements [first, first + count) of rank `source`'s data for a collective that copies.
void fill_copied(trestleDataType_t type, uint64_t seed, int source, size_t first, size_t count, void* out);

// Writes one element: the factor of rank `rank` for the operator mulsum.
void fill_mul_sum_scalar(trestleDataType_t type, int rank, void* out);

// The number of wrong elements among `count`: any bit differs. Bit patterns of averaged floats may be 2 apart.
size_t count_wrong(trestleDataType_t type, trestleRedOp_t op, const void* got, const void* expected, size_t count);

}  // namespace trestle::perf
