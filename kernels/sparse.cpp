#include "kernels/sparse.h"

#include <algorithm>
#include <array>

#include "kernels/sparse_loops.h"

namespace trestle {
namespace {

// Several loops go over a block while it is in the first-level cache. A multiple of the parts of a sum.
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

}  // namespace

size_t count_reaching(const float* values, size_t elements, float threshold) {
  return kernels::sparse_loops().count_reaching(values, elements, threshold);
}

size_t select_reaching(uint32_t* indices, float* selected, const float* values, size_t elements, float threshold,
                       uint32_t first) {
  return kernels::sparse_loops().select_reaching(indices, selected, values, elements, threshold, first);
}

MagnitudeSummary summarize_magnitudes(const float* values, size_t elements) {
  const kernels::SparseLoops& loops = kernels::sparse_loops();
  MagnitudeSummary summary;
  PartSums sums;
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    const size_t length = std::min(kBlock, elements - begin);
    const kernels::FiniteElements finite = loops.find_finite(values + begin, length);
    summary.finite += finite.count;
    summary.largest = std::max(summary.largest, finite.largest);
    loops.add_magnitudes(sums.parts(), values + begin, length);
  }
  summary.sum = sums.total();
  return summary;
}

double square_sum(const float* values, size_t elements) {
  PartSums sums;
  kernels::sparse_loops().add_squares(sums.parts(), values, elements);
  return sums.total();
}

Accumulated accumulate(float* sums, const float* values, size_t elements) {
  const kernels::SparseLoops& loops = kernels::sparse_loops();
  Accumulated result;
  PartSums squares;
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    const size_t length = std::min(kBlock, elements - begin);
    result.nans += loops.add(sums + begin, values + begin, length);
    loops.add_squares(squares.parts(), sums + begin, length);
  }
  result.square_sum = squares.total();
  return result;
}

void gather(float* to, const float* values, const uint32_t* indices, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = values[indices[i]];
}

void scatter(float* to, const uint32_t* indices, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) to[indices[i]] = values[i];
}

void scatter_add(float* sums, const uint32_t* indices, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) sums[indices[i]] += values[i];
}

void clear_at(float* values, const uint32_t* indices, size_t count) {
  for (size_t i = 0; i < count; ++i) values[indices[i]] = 0;
}

}  // namespace trestle
