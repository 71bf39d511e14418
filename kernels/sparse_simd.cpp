// The loops of kernels/sparse_loops.h for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sparse_simd.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/elements.h"
#include "kernels/sparse.h"
#include "kernels/sparse_loops.h"
#include "kernels/vector_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trestle::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using kernels::FiniteElementsOf;
using kernels::kSumParts;
using kernels::SparseLoops;
using kernels::SparseLoopsOf;

// Whole vectors are stored, so there must not be more lanes than slack.
template <class T>
using TagOf = hn::CappedTag<T, kSelectSlack>;

template <class T>
size_t count_reaching(const T* values, size_t elements, T threshold) {
  const TagOf<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto least = hn::Set(d, threshold);
  const auto below_in = [&](size_t at) { return hn::CountTrue(d, hn::Lt(hn::Abs(hn::LoadU(d, values + at)), least)); };
  size_t below = 0;
  size_t i = 0;
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    below += below_in(i) + below_in(i + lanes) + below_in(i + 2 * lanes) + below_in(i + 3 * lanes);
  }
  for (; i + lanes <= elements; i += lanes) below += below_in(i);
  for (; i < elements; ++i) below += std::abs(values[i]) < threshold;
  return elements - below;
}

// Stores the numbers of the taken elements as 32 bits each. They come in lanes as wide as the elements.
template <class D, class M>
HWY_INLINE void store_numbers(D du, hn::Vec<D> numbers, M taken, uint32_t* to) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(uint32_t)) {
    hn::CompressStore(numbers, taken, du, to);
  } else {
    const hn::Rebind<uint32_t, D> d32;
    hn::StoreU(hn::TruncateTo(d32, hn::Compress(numbers, taken)), d32, to);
  }
}

// Tests four vectors at a time, because most hold no element that reaches the threshold.
template <class T>
size_t select_reaching(uint32_t* indices, T* selected, const T* values, size_t elements, T threshold, uint32_t first) {
  const TagOf<T> d;
  const hn::RebindToUnsigned<TagOf<T>> du;
  using Number = hn::TFromD<decltype(du)>;
  const size_t lanes = hn::Lanes(d);
  const auto least = hn::Set(d, threshold);
  const auto numbers = hn::Iota(du, first);
  size_t count = 0;
  const auto take = [&](size_t at) {
    const auto v = hn::LoadU(d, values + at);
    const auto reaching = hn::Not(hn::Lt(hn::Abs(v), least));
    const auto number = hn::Add(numbers, hn::Set(du, static_cast<Number>(at)));
    const size_t taken = hn::CompressStore(v, reaching, d, selected + count);
    store_numbers(du, number, hn::RebindMask(du, reaching), indices + count);
    count += taken;
  };
  size_t i = 0;
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    const auto b0 = hn::Lt(hn::Abs(hn::LoadU(d, values + i)), least);
    const auto b1 = hn::Lt(hn::Abs(hn::LoadU(d, values + i + lanes)), least);
    const auto b2 = hn::Lt(hn::Abs(hn::LoadU(d, values + i + 2 * lanes)), least);
    const auto b3 = hn::Lt(hn::Abs(hn::LoadU(d, values + i + 3 * lanes)), least);
    if (hn::AllTrue(d, hn::And(hn::And(b0, b1), hn::And(b2, b3)))) continue;
    for (size_t v = 0; v < 4; ++v) take(i + v * lanes);
  }
  for (; i + lanes <= elements; i += lanes) take(i);
  for (; i < elements; ++i) {
    if (std::abs(values[i]) < threshold) continue;
    indices[count] = first + static_cast<uint32_t>(i);
    selected[count++] = values[i];
  }
  return count;
}

template <class T>
FiniteElementsOf<T> find_finite(const T* values, size_t elements) {
  constexpr T kMost = std::numeric_limits<T>::max();
  const TagOf<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto most = hn::Set(d, kMost);
  auto largest = hn::Zero(d);
  FiniteElementsOf<T> result;
  size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const auto magnitude = hn::Abs(hn::LoadU(d, values + i));
    const auto finite = hn::Le(magnitude, most);
    result.count += hn::CountTrue(d, finite);
    largest = hn::Max(largest, hn::IfThenElseZero(finite, magnitude));
  }
  result.largest = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < elements; ++i) {
    if (!(std::abs(values[i]) <= kMost)) continue;
    ++result.count;
    result.largest = std::max(result.largest, std::abs(values[i]));
  }
  return result;
}

// T: the elements before they were widened to doubles. The product of two floats is exact in a double, so it does not
// matter whether it is rounded before the addition. That of two doubles is always rounded.
template <class T>
struct AddSquare {
  template <class D>
  static HWY_INLINE hn::Vec<D> add(D /*d*/, hn::Vec<D> sum, hn::Vec<D> value) {
    if constexpr (sizeof(T) == sizeof(float)) {
      return hn::MulAdd(value, value, sum);
    } else {
      return hn::Add(sum, hn::Mul(value, value));
    }
  }
  static HWY_INLINE double add(double sum, double value) { return sum + value * value; }
};

template <class T>
struct AddFiniteMagnitude {
  static constexpr double kMost{std::numeric_limits<T>::max()};
  template <class D>
  static HWY_INLINE hn::Vec<D> add(D d, hn::Vec<D> sum, hn::Vec<D> value) {
    const auto magnitude = hn::Abs(value);
    return hn::Add(sum, hn::IfThenElseZero(hn::Le(magnitude, hn::Set(d, kMost)), magnitude));
  }
  static HWY_INLINE double add(double sum, double value) {
    return std::abs(value) <= kMost ? sum + std::abs(value) : sum;
  }
};

template <class D>
HWY_INLINE hn::Vec<D> load_doubles(D d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
}
template <class D>
HWY_INLINE hn::Vec<D> load_doubles(D d, const double* from) {
  return hn::LoadU(d, from);
}

// Vectors of two, four or eight doubles keep the sixteen parts in eight, four or two registers. They are variables and
// not an array, because vectors of unknown length (SVE) cannot be in arrays. On the other instruction sets the number
// of lanes is a constant, so compilers drop the unused variables.
template <class Term, class T>
HWY_INLINE void add_to_parts(double* parts, const T* values, size_t elements) {
  const hn::CappedTag<double, kSumParts / 2> d;
  const size_t lanes = hn::Lanes(d);
  const bool four = 2 * lanes < kSumParts;
  const bool eight = 4 * lanes < kSumParts;
  const auto start = [&](size_t slot) {
    return slot * lanes < kSumParts ? hn::LoadU(d, parts + slot * lanes) : hn::Zero(d);
  };
  auto s0 = start(0), s1 = start(1), s2 = start(2), s3 = start(3);
  auto s4 = start(4), s5 = start(5), s6 = start(6), s7 = start(7);
  size_t i = 0;
  for (; lanes > 1 && i + kSumParts <= elements; i += kSumParts) {
    const auto load = [&](size_t slot) { return load_doubles(d, values + i + slot * lanes); };
    s0 = Term::add(d, s0, load(0));
    s1 = Term::add(d, s1, load(1));
    if (four) {
      s2 = Term::add(d, s2, load(2));
      s3 = Term::add(d, s3, load(3));
    }
    if (eight) {
      s4 = Term::add(d, s4, load(4));
      s5 = Term::add(d, s5, load(5));
      s6 = Term::add(d, s6, load(6));
      s7 = Term::add(d, s7, load(7));
    }
  }
  hn::StoreU(s0, d, parts);
  hn::StoreU(s1, d, parts + lanes);
  if (four) {
    hn::StoreU(s2, d, parts + 2 * lanes);
    hn::StoreU(s3, d, parts + 3 * lanes);
  }
  if (eight) {
    hn::StoreU(s4, d, parts + 4 * lanes);
    hn::StoreU(s5, d, parts + 5 * lanes);
    hn::StoreU(s6, d, parts + 6 * lanes);
    hn::StoreU(s7, d, parts + 7 * lanes);
  }
  for (; i < elements; ++i) parts[i % kSumParts] = Term::add(parts[i % kSumParts], double{values[i]});
}

template <class T>
void add_magnitudes(double* parts, const T* values, size_t elements) {
  add_to_parts<AddFiniteMagnitude<T>>(parts, values, elements);
}

template <class T>
void add_squares(double* parts, const T* values, size_t elements) {
  add_to_parts<AddSquare<T>>(parts, values, elements);
}

// E: how vectors of the type are loaded and widened.
template <class E, DataType type>
size_t add(typename E::Lane* sums, const std::byte* values, size_t elements) {
  const TagOf<typename E::Lane> d;
  const size_t lanes = hn::Lanes(d);
  const auto* const stored = reinterpret_cast<const typename E::Stored*>(values);
  size_t nans = 0;
  size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const auto v = E::load(d, stored + i);
    nans += hn::CountTrue(d, hn::IsNaN(v));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), v), d, sums + i);
  }
  for (; i < elements; ++i) {
    typename E::Stored one;
    std::memcpy(&one, values + i * sizeof one, sizeof one);
    const auto value = kernels::Element<type>::widen(one);
    nans += std::isnan(value);
    sums[i] += value;
  }
  return nans;
}

template <class T, DataType type>
SparseLoopsOf<T> loops_of() {
  return {count_reaching<T>, select_reaching<T>, find_finite<T>,
          add_magnitudes<T>, add_squares<T>,     add<Plain<T>, type>};
}

SparseLoops sparse_loops_of_target() {
  return {loops_of<float, DataType::kFloat32>(), loops_of<double, DataType::kFloat64>(), add<Half, DataType::kFloat16>,
          add<Bfloat16, DataType::kBfloat16>};
}

}  // namespace trestle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trestle {
HWY_EXPORT(sparse_loops_of_target);
kernels::SparseLoops kernels::simd_sparse_loops() {
  return HWY_DYNAMIC_DISPATCH(sparse_loops_of_target)();
}
}  // namespace trestle
#endif
