#include "kernels/sparse.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "kernels/small_float.h"
#include "kernels/sparse_loops.h"

namespace trestle {
namespace {

// Several loops go over a block while it is in the first-level cache. A multiple of kSumParts, so that element 0 of
// every block belongs to part 0.
constexpr size_t kBlock = 4096;
static_assert(kBlock % kernels::kSumParts == 0);

class PartSums {
 public:
  double* parts() { return parts_.data(); }
  double total() const {
    std::array<double, kernels::kSumParts> sums = parts_;
    for (size_t width = sums.size() / 2; width > 0; width /= 2) {
      for (size_t j = 0; j < width; ++j) sums[j] += sums[j + width];
    }
    return sums[0];
  }

 private:
  std::array<double, kernels::kSumParts> parts_{};
};

// add(begin, length): adds `length` values to the sums from `begin` on, and returns how many of them are NaN.
template <class T, class Add>
Accumulated accumulate_with(const T* sums, size_t elements, Add&& add) {
  const kernels::SparseLoopsOf<T>& loops = kernels::sparse_loops_of<T>();
  Accumulated result;
  PartSums squares;
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    const size_t length = std::min(kBlock, elements - begin);
    result.nans += add(begin, length);
    loops.add_squares(squares.parts(), sums + begin, length);
  }
  result.square_sum = squares.total();
  return result;
}

}  // namespace

template <class T>
size_t count_reaching(const T* values, size_t elements, std::type_identity_t<T> threshold) {
  return kernels::sparse_loops_of<T>().count_reaching(values, elements, threshold);
}

template <class T>
size_t select_reaching(uint32_t* indices, T* selected, const std::type_identity_t<T>* values, size_t elements,
                       std::type_identity_t<T> threshold, uint32_t first) {
  return kernels::sparse_loops_of<T>().select_reaching(indices, selected, values, elements, threshold, first);
}

template <class T>
MagnitudeSummary<T> summarize_magnitudes(const T* values, size_t elements) {
  const kernels::SparseLoopsOf<T>& loops = kernels::sparse_loops_of<T>();
  MagnitudeSummary<T> summary;
  PartSums sums;
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    const size_t length = std::min(kBlock, elements - begin);
    const kernels::FiniteElementsOf<T> finite = loops.find_finite(values + begin, length);
    summary.finite += finite.count;
    summary.largest = std::max(summary.largest, finite.largest);
    loops.add_magnitudes(sums.parts(), values + begin, length);
  }
  summary.sum = sums.total();
  return summary;
}

template <class T>
double square_sum(const T* values, size_t elements) {
  PartSums sums;
  kernels::sparse_loops_of<T>().add_squares(sums.parts(), values, elements);
  return sums.total();
}

template <class T>
Accumulated accumulate(T* sums, const std::byte* values, size_t elements) {
  const kernels::SparseLoopsOf<T>& loops = kernels::sparse_loops_of<T>();
  return accumulate_with<T>(sums, elements, [&](size_t begin, size_t length) {
    return loops.add(sums + begin, values + begin * sizeof(T), length);
  });
}

Accumulated accumulate_widened(float* sums, const std::byte* values, size_t elements, DataType type) {
  CHECK(type == DataType::kFloat16 || type == DataType::kBfloat16, "only 16-bit elements are widened to a sum");
  const kernels::SparseLoops& loops = kernels::sparse_loops();
  const auto add = type == DataType::kFloat16 ? loops.add_float16 : loops.add_bfloat16;
  return accumulate_with<float>(sums, elements, [&](size_t begin, size_t length) {
    return add(sums + begin, values + begin * size_of(type), length);
  });
}

template <class T>
void gather(T* to, const std::type_identity_t<T>* values, const uint32_t* indices, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = values[indices[i]];
}

template <class T>
void scatter(std::byte* to, const uint32_t* indices, const T* values, size_t count) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + indices[i] * sizeof(T), values + i, sizeof(T));
}

template <class T>
void scatter_add(std::byte* sums, const uint32_t* indices, const T* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::byte* const at = sums + indices[i] * sizeof(T);
    T sum;
    std::memcpy(&sum, at, sizeof sum);
    sum += values[i];
    std::memcpy(at, &sum, sizeof sum);
  }
}

template <class T>
void clear_at(T* values, const uint32_t* indices, size_t count) {
  for (size_t i = 0; i < count; ++i) values[indices[i]] = 0;
}

void scatter_narrowed(std::byte* to, const uint32_t* indices, const float* values, size_t count, DataType type) {
  CHECK(type == DataType::kFloat16 || type == DataType::kBfloat16, "only 16-bit elements are narrowed");
  const auto narrow = type == DataType::kFloat16 ? float_to_half : float_to_bfloat16;
  for (size_t i = 0; i < count; ++i) {
    const uint16_t bits = narrow(values[i]);
    std::memcpy(to + indices[i] * sizeof bits, &bits, sizeof bits);
  }
}

template size_t count_reaching<float>(const float*, size_t, float);
template size_t count_reaching<double>(const double*, size_t, double);
template size_t select_reaching<float>(uint32_t*, float*, const float*, size_t, float, uint32_t);
template size_t select_reaching<double>(uint32_t*, double*, const double*, size_t, double, uint32_t);
template MagnitudeSummary<float> summarize_magnitudes<float>(const float*, size_t);
template MagnitudeSummary<double> summarize_magnitudes<double>(const double*, size_t);
template double square_sum<float>(const float*, size_t);
template double square_sum<double>(const double*, size_t);
template Accumulated accumulate<float>(float*, const std::byte*, size_t);
template Accumulated accumulate<double>(double*, const std::byte*, size_t);
template void gather<float>(float*, const float*, const uint32_t*, size_t);
template void gather<double>(double*, const double*, const uint32_t*, size_t);
template void scatter<float>(std::byte*, const uint32_t*, const float*, size_t);
template void scatter<double>(std::byte*, const uint32_t*, const double*, size_t);
template void scatter_add<float>(std::byte*, const uint32_t*, const float*, size_t);
template void scatter_add<double>(std::byte*, const uint32_t*, const double*, size_t);
template void clear_at<float>(float*, const uint32_t*, size_t);
template void clear_at<double>(double*, const uint32_t*, size_t);

}  // namespace trestle
