// The loops behind kernels/sparse.h, for one instruction set. Internal to kernels/, pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trestle::kernels {

inline constexpr size_t kSumParts = 16;

template <class T>
struct FiniteElementsOf {
  size_t count = 0;
  T largest = 0;  // magnitude
};
using FiniteElements = FiniteElementsOf<float>;

// T: float or double. parts: kSumParts sums, to which elements are added. The first element belongs to the first part.
template <class T>
struct SparseLoopsOf {
  size_t (*count_reaching)(const T* values, size_t elements, T threshold);
  size_t (*select_reaching)(uint32_t* indices, T* selected, const T* values, size_t elements, T threshold,
                            uint32_t first);
  FiniteElementsOf<T> (*find_finite)(const T* values, size_t elements);
  void (*add_magnitudes)(double* parts, const T* values, size_t elements);  // of finite elements
  void (*add_squares)(double* parts, const T* values, size_t elements);
  // values: elements of T, any alignment. Returns the NaNs among them.
  size_t (*add)(T* sums, const std::byte* values, size_t elements);
};

// The inherited loops are those of float32.
struct SparseLoops : SparseLoopsOf<float> {
  SparseLoopsOf<double> of_doubles;
  // Like `add`, each value widened to float32.
  size_t (*add_float16)(float* sums, const std::byte* values, size_t elements);
  size_t (*add_bfloat16)(float* sums, const std::byte* values, size_t elements);
};

const SparseLoops& portable_sparse_loops();
// Only in builds with Highway. For the best instruction set of this CPU.
SparseLoops simd_sparse_loops();
// The loops that this build and this CPU use.
const SparseLoops& sparse_loops();

template <class T>
const SparseLoopsOf<T>& sparse_loops_of() {
  if constexpr (sizeof(T) == sizeof(double)) {
    return sparse_loops().of_doubles;
  } else {
    return sparse_loops();
  }
}

}  // namespace trestle::kernels
