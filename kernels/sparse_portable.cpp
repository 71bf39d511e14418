// The loops of kernels/sparse_loops.h in plain C++.
#include <algorithm>
#include <cmath>

#include "kernels/elements.h"
#include "kernels/sparse_loops.h"

namespace trestle::kernels {
namespace {

template <class T>
size_t count_reaching(const T* values, size_t elements, T threshold) {
  size_t below = 0;
  for (size_t i = 0; i < elements; ++i) below += std::abs(values[i]) < threshold;
  return elements - below;
}

// Writes every element, and advances only past those that are taken. So there is no branch to predict.
template <class T>
size_t select_reaching(uint32_t* indices, T* selected, const T* values, size_t elements, T threshold, uint32_t first) {
  size_t count = 0;
  for (size_t i = 0; i < elements; ++i) {
    indices[count] = first + static_cast<uint32_t>(i);
    selected[count] = values[i];
    count += !(std::abs(values[i]) < threshold);
  }
  return count;
}

template <class T>
FiniteElementsOf<T> find_finite(const T* values, size_t elements) {
  FiniteElementsOf<T> finite;
  for (size_t i = 0; i < elements; ++i) {
    if (!std::isfinite(values[i])) continue;
    ++finite.count;
    finite.largest = std::max(finite.largest, std::abs(values[i]));
  }
  return finite;
}

template <class T>
void add_magnitudes(double* parts, const T* values, size_t elements) {
  for (size_t i = 0; i < elements; ++i) {
    if (std::isfinite(values[i])) parts[i % kSumParts] += std::abs(values[i]);
  }
}

template <class T>
void add_squares(double* parts, const T* values, size_t elements) {
  for (size_t i = 0; i < elements; ++i) parts[i % kSumParts] += double{values[i]} * values[i];
}

template <DataType type>
size_t add(typename Element<type>::Value* sums, const std::byte* values, size_t elements) {
  typename Element<type>::Stored stored;
  size_t nans = 0;
  for (size_t i = 0; i < elements; ++i) {
    std::memcpy(&stored, values + i * sizeof(stored), sizeof(stored));
    const auto value = Element<type>::widen(stored);
    nans += std::isnan(value);
    sums[i] += value;
  }
  return nans;
}

template <class T, DataType type>
constexpr SparseLoopsOf<T> kLoopsOf = {count_reaching<T>, select_reaching<T>, find_finite<T>,
                                       add_magnitudes<T>, add_squares<T>,     add<type>};

}  // namespace

const SparseLoops& portable_sparse_loops() {
  static constexpr SparseLoops kLoops = {kLoopsOf<float, DataType::kFloat32>, kLoopsOf<double, DataType::kFloat64>,
                                         add<DataType::kFloat16>, add<DataType::kBfloat16>};
  return kLoops;
}

}  // namespace trestle::kernels
