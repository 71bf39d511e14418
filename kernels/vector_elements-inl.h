// How vectors of each element type are loaded, folded and stored. Included once per instruction set by Highway's
// foreach_target.
//
// An element class defines the type in memory (Stored), the type that is folded (Lane), and kScalesFirst (elements.h).
// Its functions take the tag of the folded vector. The arithmetic is that of small_float.h, lane by lane. Every
// function is forced inline, because it must be compiled for the instruction set of its caller.

// Highway's include guard for headers that are included once per instruction set.
#if defined(TRESTLE_VECTOR_ELEMENTS) == defined(HWY_TARGET_TOGGLE)
#ifdef TRESTLE_VECTOR_ELEMENTS
#undef TRESTLE_VECTOR_ELEMENTS
#else
#define TRESTLE_VECTOR_ELEMENTS
#endif

#include <hwy/highway.h>

#include "kernels/small_float.h"

HWY_BEFORE_NAMESPACE();
namespace trestle::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sets on which Highway converts float16 with the CPU's own instructions (round to nearest even, denormals kept).
// Highway's emulation does not do that.
inline constexpr bool kHardwareHalf = (HWY_TARGET & (HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL)) != 0;

template <class T>
struct Plain {
  using Stored = T;
  using Lane = T;
  static constexpr bool kScalesFirst = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* from) {
    return hn::LoadU(d, from);
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, T* to) {
    hn::StoreU(v, d, to);
  }
  template <class D>
  static HWY_INLINE void stream(hn::Vec<D> v, D d, T* to) {
    hn::Stream(v, d, to);
  }
};

// Elements that are folded as float32. Derived converts vectors of float32 to small integers in 32-bit lanes and back.
template <class StoredType, class Derived>
struct Narrow {
  using Stored = StoredType;
  using Lane = float;
  static constexpr bool kScalesFirst = true;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const Stored* from) {
    const hn::RebindToUnsigned<D> du;
    return Derived::widen(d, hn::PromoteTo(du, hn::LoadU(hn::Rebind<Stored, D>(), from)));
  }
  template <class D>
  static HWY_INLINE auto narrowed(hn::Vec<D> v, D d) {
    return hn::TruncateTo(hn::Rebind<Stored, D>(), Derived::narrow(d, v));
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, Stored* to) {
    hn::StoreU(narrowed(v, d), hn::Rebind<Stored, D>(), to);
  }
  // A narrow vector is less than a cache line, and non-temporal stores of parts of lines are slow.
  template <class D>
  static HWY_INLINE void stream(hn::Vec<D> v, D d, Stored* to) {
    store(v, d, to);
  }
};

struct Bfloat16 : Narrow<uint16_t, Bfloat16> {
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, hn::Vec<hn::RebindToUnsigned<D>> small) {
    return hn::BitCast(d, hn::ShiftLeft<16>(small));
  }
  template <class D>
  static HWY_INLINE auto narrow(D /*d*/, hn::Vec<D> v) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(du, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
    const auto quiet = hn::Or(upper, hn::Set(du, 0x40u));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  }
};

template <class StoredType, SmallFloat f>
struct Small : Narrow<StoredType, Small<StoredType, f>> {
  static constexpr int kSignShift = 32 - 8 * static_cast<int>(sizeof(StoredType));
  static constexpr int kMantissaShift = 23 - f.mantissa_bits;

  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D d, hn::Vec<hn::RebindToUnsigned<D>> small) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const auto sign_bit = hn::Set(du, 0x80000000u);
    const auto shifted = hn::ShiftLeft<kSignShift>(small);
    const auto sign = hn::And(shifted, sign_bit);
    const auto magnitude = hn::ShiftRight<kSignShift>(hn::AndNot(sign_bit, shifted));
    const auto factor = hn::BitCast(d, hn::Set(du, widening_factor_bits(f)));
    const auto scaled = hn::Mul(hn::BitCast(d, hn::ShiftLeft<kMantissaShift>(magnitude)), factor);
    // From the small type's infinity (or single NaN) on: sets all exponent bits, keeps the mantissa, makes NaNs quiet.
    constexpr auto kInfinity = static_cast<int32_t>(f.overflow_result);
    constexpr int32_t kLargestNumber = f.overflow_result == f.nan_result ? kInfinity - 1 : kInfinity;
    const auto special = hn::RebindMask(du, hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, kInfinity - 1)));
    const auto nan = hn::RebindMask(du, hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, kLargestNumber)));
    const auto exponent = hn::Or(hn::IfThenElseZero(special, hn::Set(du, 0x7f800000u)),
                                 hn::IfThenElseZero(nan, hn::Set(du, 0x00400000u)));
    return hn::BitCast(d, hn::Or(hn::Or(hn::BitCast(du, scaled), sign), exponent));
  }

  template <class D>
  static HWY_INLINE auto narrow(D d, hn::Vec<D> v) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(du, v);
    const auto sign_bit = hn::Set(du, 0x80000000u);
    const auto sign = hn::ShiftRight<kSignShift>(hn::And(bits, sign_bit));
    const auto magnitude = hn::AndNot(sign_bit, bits);
    // The magnitude is never negative. Every set has signed comparisons.
    const auto signed_magnitude = hn::BitCast(di, magnitude);
    const auto reaches = [&](uint32_t limit) HWY_ATTR {
      return hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, static_cast<int32_t>(limit) - 1)));
    };
    const auto magnet = hn::Set(du, rounding_magnet_bits(f));
    const auto denormal = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, magnet))), magnet);
    const auto odd = hn::And(hn::ShiftRight<kMantissaShift>(magnitude), hn::Set(du, 1u));
    constexpr uint32_t kRebias = static_cast<uint32_t>(127 - f.exponent_bias) << 23;
    constexpr uint32_t kHalfUnit = (1u << (kMantissaShift - 1)) - 1u;
    const auto normal =
        hn::ShiftRight<kMantissaShift>(hn::Add(hn::Add(magnitude, hn::Set(du, kHalfUnit - kRebias)), odd));
    auto small = hn::IfThenElse(reaches(smallest_normal_bits(f)), normal, denormal);
    small = hn::IfThenElse(reaches(f.overflow_bits), hn::Set(du, f.overflow_result), small);
    small = hn::IfThenElse(reaches(0x7f800001u), hn::Set(du, f.nan_result), small);
    return hn::Or(small, sign);
  }
};

using E4m3 = Small<uint8_t, kE4m3>;
using E5m2 = Small<uint8_t, kE5m2>;

struct HardwareHalf : Narrow<uint16_t, HardwareHalf> {
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const uint16_t* from) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(d16, from)));
  }
  template <class D>
  static HWY_INLINE void store(hn::Vec<D> v, D d, uint16_t* to) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::Rebind<hwy::float16_t, D> dh;
    (void)d;
    hn::StoreU(hn::BitCast(d16, hn::DemoteTo(dh, v)), d16, to);
  }
  template <class D>
  static HWY_INLINE void stream(hn::Vec<D> v, D d, uint16_t* to) {
    store(v, d, to);
  }
};
using Half = std::conditional_t<kHardwareHalf, HardwareHalf, Small<uint16_t, kHalf>>;

struct Sum {
  template <class V>
  static HWY_INLINE V fold(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Prod {
  template <class V>
  static HWY_INLINE V fold(V a, V b) {
    return hn::Mul(a, b);
  }
};

// The later value replaces the earlier one if it is better or a NaN. A NaN stays, because every later comparison with
// it fails.
template <class V>
HWY_INLINE V replaced_if(hn::Mask<hn::DFromV<V>> better, V a, V b) {
  return hn::IfThenElse(hn::Or(better, hn::IsNaN(b)), b, a);
}
struct Max {
  template <class V>
  static HWY_INLINE V fold(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>())
      return replaced_if(hn::Lt(a, b), a, b);
    else
      return hn::Max(a, b);
  }
};
struct Min {
  template <class V>
  static HWY_INLINE V fold(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>())
      return replaced_if(hn::Lt(b, a), a, b);
    else
      return hn::Min(a, b);
  }
};

}  // namespace trestle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
