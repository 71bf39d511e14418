// The loops behind kernels/sparse.h, for one instruction set. Internal to kernels/, pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trestle::kernels {

inline constexpr size_t kSumParts = 16;

struct FiniteElements {
  size_t count = 0;
  float largest = 0;  // magnitude
};

// parts: kSumParts sums, to which elements are added. The first element belongs to the first part.
struct SparseLoops {
  size_t (*count_reaching)(const float* values, size_t elements, float threshold);
  size_t (*select_reaching)(uint32_t* indices, float* selected, const float* values, size_t elements, float threshold,
                            uint32_t first);
  FiniteElements (*find_finite)(const float* values, size_t elements);
  void (*add_magnitudes)(double* parts, const float* values, size_t elements);  // of finite elements
  void (*add_squares)(double* parts, const float* values, size_t elements);
  size_t (*add)(float* sums, const float* values, size_t elements);  // returns the NaNs among the values
};

const SparseLoops& portable_sparse_loops();
// Only in builds with Highway. For the best instruction set of this CPU.
SparseLoops simd_sparse_loops();
// The ones to use.
const SparseLoops& sparse_loops();

}  // namespace trestle::kernels
