// Loops over a float32 vector of which few elements are taken, by magnitude. Pure, any thread, nothing is allocated.
// The caller owns all memory; any alignment.
//
// An element reaches a threshold if its magnitude is not below it. So a NaN reaches every threshold. Thresholds are not
// negative and not NaN.
//
// All instruction sets give the same bits. Sums are added in doubles, in sixteen parts: part j has the elements
// j, j + 16, j + 32, ... in this order. Then j and j + 8 are added, and so on down to one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trestle {

// How many elements reach the threshold.
size_t count_reaching(const float* values, size_t elements, float threshold);

// What select_reaching() may write behind its last element.
inline constexpr size_t kSelectSlack = 64;

// Writes the elements that reach the threshold, in their order: the number of each (counted from `first`), and its
// value. Returns how many. indices, selected: room for `elements` + kSelectSlack, whose rest is unspecified afterwards;
// disjoint from values.
size_t select_reaching(uint32_t* indices, float* selected, const float* values, size_t elements, float threshold,
                       uint32_t first);

struct MagnitudeSummary {
  size_t finite = 0;  // how many elements are finite. Of these:
  float largest = 0;  // magnitude
  double sum = 0;     // of magnitudes
};
MagnitudeSummary summarize_magnitudes(const float* values, size_t elements);

// The sum of the squares.
double square_sum(const float* values, size_t elements);

struct Accumulated {
  size_t nans = 0;        // among the values, not the sums
  double square_sum = 0;  // of the sums
};
// sums[i] += values[i]. values: equal to sums or disjoint from it.
Accumulated accumulate(float* sums, const float* values, size_t elements);

// With a list of indices there is nothing to vectorise on most processors: loads go to unrelated cache lines. indices:
// each below the length of the vector.
void gather(float* to, const float* values, const uint32_t* indices, size_t count);   // to[i] = values[indices[i]]
void scatter(float* to, const uint32_t* indices, const float* values, size_t count);  // to[indices[i]] = values[i]
void scatter_add(float* sums, const uint32_t* indices, const float* values, size_t count);  // adds, in order
void clear_at(float* values, const uint32_t* indices, size_t count);                        // values[indices[i]] = 0

}  // namespace trestle
