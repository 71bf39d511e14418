// The loop that folds k sources into dst, for any element class and operator. Included once per instruction set (see
// vector_elements-inl.h).
//
// Folds whole vectors first, four at a time so that the loads of a source overlap. The remainder is one vector that
// ends at the last element and overlaps the others. It is folded before anything is stored, so that dst may be one of
// the sources. Fewer elements than a vector are folded with 16-byte vectors and then one by one. So no tables and no
// masked loads are needed, which old sets do not have.

// Highway's include guard for headers that are included once per instruction set.
#if defined(TRESTLE_VECTOR_FOLD) == defined(HWY_TARGET_TOGGLE)
#ifdef TRESTLE_VECTOR_FOLD
#undef TRESTLE_VECTOR_FOLD
#else
#define TRESTLE_VECTOR_FOLD
#endif

#include <hwy/cache_control.h>

#include <array>
#include <cstddef>
#include <span>

#include "kernels/copy.h"
#include "kernels/elements.h"
#include "kernels/reduce.h"
#include "kernels/vector_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trestle::HWY_NAMESPACE {

using Sources = std::span<const std::byte* const>;

// What an average does (ReduceSpec::average_over), and the kind of store.
template <class Lane>
struct Finish {
  Lane divisor = 0;  // of the folded vector; 0: none
  bool streaming = false;
  Lane factor = 1;  // of the sources that are no sums
  const uint8_t* sums = nullptr;

  HWY_INLINE Lane factor_of(size_t source) const { return sums != nullptr && sums[source] != 0 ? 1 : factor; }
};

// kSources > 0: a copy of the source pointers that the compiler can keep in registers. It could not keep the caller's
// array there, because a store to dst might change that. kSources == 0: any number of sources, read from the caller's
// array.
template <size_t kSources>
struct SourceList {
  explicit HWY_INLINE SourceList(Sources sources) {
    for (size_t s = 0; s < kSources; ++s) pointers[s] = sources[s];
  }
  HWY_INLINE size_t size() const { return kSources; }
  HWY_INLINE const std::byte* operator[](size_t s) const { return pointers[s]; }
  std::array<const std::byte*, kSources> pointers;
};
template <>
struct SourceList<0> {
  explicit HWY_INLINE SourceList(Sources sources) : pointers(sources) {}
  HWY_INLINE size_t size() const { return pointers.size(); }
  HWY_INLINE const std::byte* operator[](size_t s) const { return pointers[s]; }
  Sources pointers;
};

template <class E>
HWY_INLINE const typename E::Stored* element(const std::byte* base, size_t index) {
  return reinterpret_cast<const typename E::Stored*>(base) + index;
}
template <class E>
HWY_INLINE typename E::Stored* element(std::byte* base, size_t index) {
  return reinterpret_cast<typename E::Stored*>(base) + index;
}

template <class D, class V, class Lane>
HWY_INLINE V divided(D d, V value, Lane divisor) {
  if constexpr (hwy::IsFloat<Lane>()) {
    if (divisor != 0) return hn::Div(value, hn::Set(d, divisor));
  }
  (void)d;
  (void)divisor;
  return value;
}

template <class E, class D>
HWY_INLINE hn::Vec<D> loaded(D d, const typename E::Stored* from, typename E::Lane factor) {
  if constexpr (E::kScalesFirst) {
    if (factor != 1) return hn::Mul(E::load(d, from), hn::Set(d, factor));
  }
  (void)factor;
  return E::load(d, from);
}

template <class E, class Op, class D, class List>
HWY_INLINE hn::Vec<D> folded(D d, const List& sources, size_t index, const Finish<typename E::Lane>& finish) {
  auto value = loaded<E>(d, element<E>(sources[0], index), finish.factor_of(0));
  for (size_t s = 1; s < sources.size(); ++s)
    value = Op::fold(value, loaded<E>(d, element<E>(sources[s], index), finish.factor_of(s)));
  return divided(d, value, finish.divisor);
}

// Folds whole vectors of [begin, end). Returns where it stopped.
template <class E, class Op, class D, class List>
HWY_INLINE size_t fold_vectors(D d, std::byte* dst, const List& sources, size_t begin, size_t end,
                               Finish<typename E::Lane> finish) {
  const size_t lanes = hn::Lanes(d);
  size_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    const auto* first = element<E>(sources[0], i);
    auto factor = finish.factor_of(0);
    auto v0 = loaded<E>(d, first, factor);
    auto v1 = loaded<E>(d, first + lanes, factor);
    auto v2 = loaded<E>(d, first + 2 * lanes, factor);
    auto v3 = loaded<E>(d, first + 3 * lanes, factor);
    for (size_t s = 1; s < sources.size(); ++s) {
      const auto* next = element<E>(sources[s], i);
      factor = finish.factor_of(s);
      v0 = Op::fold(v0, loaded<E>(d, next, factor));
      v1 = Op::fold(v1, loaded<E>(d, next + lanes, factor));
      v2 = Op::fold(v2, loaded<E>(d, next + 2 * lanes, factor));
      v3 = Op::fold(v3, loaded<E>(d, next + 3 * lanes, factor));
    }
    v0 = divided(d, v0, finish.divisor);
    v1 = divided(d, v1, finish.divisor);
    v2 = divided(d, v2, finish.divisor);
    v3 = divided(d, v3, finish.divisor);
    auto* to = element<E>(dst, i);
    if (finish.streaming) {
      E::stream(v0, d, to);
      E::stream(v1, d, to + lanes);
      E::stream(v2, d, to + 2 * lanes);
      E::stream(v3, d, to + 3 * lanes);
    } else {
      E::store(v0, d, to);
      E::store(v1, d, to + lanes);
      E::store(v2, d, to + 2 * lanes);
      E::store(v3, d, to + 3 * lanes);
    }
  }
  for (; i + lanes <= end; i += lanes) {
    E::store(folded<E, Op>(d, sources, i, finish), d, element<E>(dst, i));
  }
  return i;
}

// [begin, end) has at least one vector's worth of elements, or any number if the tag has a single lane.
template <class E, class Op, size_t kSources, class D>
HWY_INLINE void fold_range(D d, std::byte* dst, Sources all, size_t begin, size_t end,
                           Finish<typename E::Lane> finish) {
  const SourceList<kSources> sources(all);
  const size_t lanes = hn::Lanes(d);
  const bool rest = (end - begin) % lanes != 0;
  auto last = hn::Zero(d);
  if (rest) last = folded<E, Op>(d, sources, end - lanes, finish);
  fold_vectors<E, Op>(d, dst, sources, begin, end, finish);
  if (rest) E::store(last, d, element<E>(dst, end - lanes));
}

template <class E, class Op>
HWY_INLINE void fold_few(std::byte* dst, Sources sources, size_t begin, size_t end, Finish<typename E::Lane> finish) {
  const hn::CappedTag<typename E::Lane, 16 / sizeof(typename E::Lane)> d16;
  const hn::CappedTag<typename E::Lane, 1> d1;
  finish.streaming = false;
  if (end - begin >= hn::Lanes(d16)) {
    fold_range<E, Op, 0>(d16, dst, sources, begin, end, finish);
  } else {
    const SourceList<0> list(sources);
    fold_vectors<E, Op>(d1, dst, list, begin, end, finish);
  }
}

// The number of elements until dst is aligned to the vector's size, which non-temporal stores need.
template <class E, class D>
HWY_INLINE size_t elements_to_boundary(D d, const std::byte* dst) {
  const size_t vector_bytes = hn::Lanes(d) * sizeof(typename E::Lane);
  const size_t beyond = reinterpret_cast<uintptr_t>(dst) % vector_bytes;
  return beyond == 0 ? 0 : (vector_bytes - beyond) / sizeof(typename E::Stored);
}

// Does a whole call. kMostFixed: source counts 2..kMostFixed have a loop of their own.
template <class E, class Op, size_t kMostFixed>
HWY_INLINE void fold_all(std::byte* dst, Sources sources, size_t begin, size_t end, Finish<typename E::Lane> finish) {
  const hn::ScalableTag<typename E::Lane> d;
  if (end - begin < hn::Lanes(d)) return fold_few<E, Op>(dst, sources, begin, end, finish);
  if (finish.streaming) {
    const size_t head = elements_to_boundary<E>(d, dst + begin * sizeof(typename E::Stored));
    const bool reachable =
        reinterpret_cast<uintptr_t>(dst) % sizeof(typename E::Stored) == 0 && head + 4 * hn::Lanes(d) < end - begin;
    finish.streaming = reachable;
    if (reachable && head > 0) fold_few<E, Op>(dst, sources, begin, begin + head, finish);
    if (reachable) begin += head;
  }
  if (sources.size() == 2) {
    fold_range<E, Op, 2>(d, dst, sources, begin, end, finish);
  } else if (kMostFixed >= 3 && sources.size() == 3) {
    fold_range<E, Op, kMostFixed >= 3 ? 3 : 0>(d, dst, sources, begin, end, finish);
  } else if (kMostFixed >= 4 && sources.size() == 4) {
    fold_range<E, Op, kMostFixed >= 4 ? 4 : 0>(d, dst, sources, begin, end, finish);
  } else {
    fold_range<E, Op, 0>(d, dst, sources, begin, end, finish);
  }
  if (finish.streaming) hwy::FlushStream();
}

// A ReduceFunction for floating point types.
template <class E, class Op, size_t kMostFixed>
void reduce_floats(std::byte* dst, Sources sources, size_t elements, const ReduceSpec& spec) {
  if (sources.size() == 1 && spec.average_over == 0) {
    return copy(dst, sources[0], elements * sizeof(typename E::Stored), spec.streaming);
  }
  using Lane = typename E::Lane;
  if constexpr (E::kScalesFirst) {
    const Lane factor = kernels::average_factor(spec.average_over, false);
    return fold_all<E, Op, kMostFixed>(dst, sources, 0, elements, {0, spec.streaming, factor, spec.sums});
  }
  fold_all<E, Op, kMostFixed>(dst, sources, 0, elements, {static_cast<Lane>(spec.average_over), spec.streaming});
}

}  // namespace trestle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
