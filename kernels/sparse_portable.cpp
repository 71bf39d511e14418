// The loops of kernels/sparse_loops.h in plain C++.
#include <algorithm>
#include <cmath>

#include "kernels/sparse_loops.h"

namespace trestle::kernels {
namespace {

size_t count_reaching(const float* values, size_t elements, float threshold) {
  size_t below = 0;
  for (size_t i = 0; i < elements; ++i) below += std::abs(values[i]) < threshold;
  return elements - below;
}

// Writes every element and moves on only behind those that are taken: no branch to predict.
size_t select_reaching(uint32_t* indices, float* selected, const float* values, size_t elements, float threshold,
                       uint32_t first) {
  size_t count = 0;
  for (size_t i = 0; i < elements; ++i) {
    indices[count] = first + static_cast<uint32_t>(i);
    selected[count] = values[i];
    count += !(std::abs(values[i]) < threshold);
  }
  return count;
}

FiniteElements find_finite(const float* values, size_t elements) {
  FiniteElements finite;
  for (size_t i = 0; i < elements; ++i) {
    if (!std::isfinite(values[i])) continue;
    ++finite.count;
    finite.largest = std::max(finite.largest, std::abs(values[i]));
  }
  return finite;
}

void add_magnitudes(double* parts, const float* values, size_t elements) {
  for (size_t i = 0; i < elements; ++i) {
    if (std::isfinite(values[i])) parts[i % kSumParts] += std::abs(values[i]);
  }
}

void add_squares(double* parts, const float* values, size_t elements) {
  for (size_t i = 0; i < elements; ++i) parts[i % kSumParts] += double{values[i]} * values[i];
}

size_t add(float* sums, const float* values, size_t elements) {
  size_t nans = 0;
  for (size_t i = 0; i < elements; ++i) {
    nans += std::isnan(values[i]);
    sums[i] += values[i];
  }
  return nans;
}

}  // namespace

const SparseLoops& portable_sparse_loops() {
  static constexpr SparseLoops kLoops = {count_reaching, select_reaching, find_finite,
                                         add_magnitudes, add_squares,     add};
  return kLoops;
}

}  // namespace trestle::kernels
