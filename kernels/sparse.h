// Loops over a vector of float32 or float64 (T) of which few elements are taken, by magnitude. Vectors of float16 and
// bfloat16 are added to float32 ones. Pure, any thread, nothing is allocated. The caller owns all memory. Pointers to T
// are aligned as T is; memory of a program (std::byte) has any alignment.
//
// An element reaches a threshold if its magnitude is not below it. So a NaN reaches every threshold. Thresholds are not
// negative and not NaN.
//
// All instruction sets give the same bits. Sums are added in doubles, in sixteen parts: part j has the elements
// j, j + 16, j + 32, ... in this order. Then j and j + 8 are added, and so on down to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/types.h"

namespace trestle {

// How many elements reach the threshold.
template <class T>
size_t count_reaching(const T* values, size_t elements, std::type_identity_t<T> threshold);

// What select_reaching() may write behind its last element.
inline constexpr size_t kSelectSlack = 64;

// Writes the elements that reach the threshold, in their order: the number of each (counted from `first`), and its
// value. Returns how many. indices, selected: room for `elements` + kSelectSlack, whose rest is unspecified afterwards;
// disjoint from values.
template <class T>
size_t select_reaching(uint32_t* indices, T* selected, const std::type_identity_t<T>* values, size_t elements,
                       std::type_identity_t<T> threshold, uint32_t first);

template <class T>
struct MagnitudeSummary {
  size_t finite = 0;  // how many elements are finite. Of these:
  T largest = 0;      // magnitude
  double sum = 0;     // of magnitudes
};
template <class T>
MagnitudeSummary<T> summarize_magnitudes(const T* values, size_t elements);

// The sum of the squares.
template <class T>
double square_sum(const T* values, size_t elements);

struct Accumulated {
  size_t nans = 0;        // among the values, not the sums
  double square_sum = 0;  // of the sums
};
// sums[i] += values[i]. values: elements of T, equal to sums or disjoint from it.
template <class T>
Accumulated accumulate(T* sums, const std::byte* values, size_t elements);
// accumulate() with values of kFloat16 or kBfloat16 (CHECKed).
Accumulated accumulate_widened(float* sums, const std::byte* values, size_t elements, DataType type);

// With a list of indices there is nothing to vectorise on most processors: loads go to unrelated cache lines. indices:
// each below the length of the vector.
template <class T>  // to[i] = values[indices[i]]
void gather(T* to, const std::type_identity_t<T>* values, const uint32_t* indices, size_t count);
template <class T>  // to[indices[i]] = values[i]. to: elements of T
void scatter(std::byte* to, const uint32_t* indices, const T* values, size_t count);
template <class T>  // adds, in order. sums: elements of T
void scatter_add(std::byte* sums, const uint32_t* indices, const T* values, size_t count);
template <class T>  // values[indices[i]] = 0
void clear_at(T* values, const uint32_t* indices, size_t count);
// As scatter(), to elements of kFloat16 or kBfloat16 (CHECKed). Rounds as kernels/convert.h.
void scatter_narrowed(std::byte* to, const uint32_t* indices, const float* values, size_t count, DataType type);

}  // namespace trestle
