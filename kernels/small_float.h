// Scalar conversions between float32 and the 8- and 16-bit floating point types. Pure functions, any thread.
//
// Rounding, overflow and NaN are as in convert.h. The SIMD loops do the same arithmetic lane by lane. Narrowing has two
// cases. If the small type has the value's exponent, integer arithmetic rounds off the low mantissa bits; a carry into
// the exponent is correct. A smaller value is added to a power of two whose unit in the last place is the small type's
// smallest step, so the adder rounds it.
#pragma once

#include <bit>
#include <cstdint>

namespace trestle {

// Layout of a small type: mantissa bits, bias of the exponent, and results beyond its range.
struct SmallFloat {
  int mantissa_bits;
  int exponent_bias;
  uint32_t overflow_bits;  // |float32| bits from here on give overflow_result; NaNs give nan_result
  uint32_t overflow_result;
  uint32_t nan_result;
};
// From 65536 on the result is infinite. 65520 rounds to infinity without this.
inline constexpr SmallFloat kHalf = {10, 15, 0x47800000u, 0x7c00u, 0x7e00u};
inline constexpr SmallFloat kE5m2 = {2, 15, 0x47800000u, 0x7cu, 0x7eu};
// From the first value above 464. 464 itself rounds to 448.
inline constexpr SmallFloat kE4m3 = {3, 7, 0x43e80001u, 0x7fu, 0x7fu};

// Bits of float32 constants that both the scalar and the SIMD loops use.
constexpr uint32_t smallest_normal_bits(SmallFloat f) {
  return static_cast<uint32_t>(128 - f.exponent_bias) << 23;
}
constexpr uint32_t rounding_magnet_bits(SmallFloat f) {
  return static_cast<uint32_t>(127 + 1 - f.exponent_bias - f.mantissa_bits + 23) << 23;
}
constexpr uint32_t widening_factor_bits(SmallFloat f) {
  return static_cast<uint32_t>(254 - f.exponent_bias) << 23;
}

constexpr uint32_t magnitude_to_small(uint32_t magnitude, SmallFloat f) {
  const int shift = 23 - f.mantissa_bits;
  if (magnitude > 0x7f800000u) return f.nan_result;
  if (magnitude >= f.overflow_bits) return f.overflow_result;
  if (magnitude < smallest_normal_bits(f)) {
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(rounding_magnet_bits(f));
    return std::bit_cast<uint32_t>(sum) - rounding_magnet_bits(f);
  }
  const uint32_t odd = (magnitude >> shift) & 1u;
  const uint32_t rebias = static_cast<uint32_t>(127 - f.exponent_bias) << 23;
  return (magnitude - rebias + ((1u << (shift - 1)) - 1u) + odd) >> shift;
}

template <SmallFloat f, class Bits>
constexpr Bits float_to_small(float value) {
  constexpr int kSignShift = 32 - 8 * static_cast<int>(sizeof(Bits));
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<Bits>(((bits & 0x80000000u) >> kSignShift) | magnitude_to_small(bits & 0x7fffffffu, f));
}

template <SmallFloat f, class Bits>
constexpr float small_to_float(Bits small) {
  constexpr int kSignShift = 32 - 8 * static_cast<int>(sizeof(Bits));
  constexpr Bits kSignBit = static_cast<Bits>(1u << (8 * sizeof(Bits) - 1));
  const uint32_t sign = static_cast<uint32_t>(small & kSignBit) << kSignShift;
  const auto magnitude = static_cast<uint32_t>(small & static_cast<Bits>(~kSignBit));
  // Infinities and NaNs keep their mantissa. e4m3 has no infinity and one NaN, so its overflow_result equals its
  // nan_result.
  if (magnitude >= f.overflow_result) {
    const uint32_t mantissa = magnitude - f.overflow_result + (f.overflow_result == f.nan_result ? 1u : 0u);
    const uint32_t quiet = mantissa != 0 ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << (23 - f.mantissa_bits)));
  }
  const float scaled = std::bit_cast<float>(magnitude << (23 - f.mantissa_bits));
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled * std::bit_cast<float>(widening_factor_bits(f))) | sign);
}

constexpr float half_to_float(uint16_t bits) {
  return small_to_float<kHalf>(bits);
}
constexpr uint16_t float_to_half(float value) {
  return float_to_small<kHalf, uint16_t>(value);
}
constexpr float e5m2_to_float(uint8_t bits) {
  return small_to_float<kE5m2>(bits);
}
constexpr uint8_t float_to_e5m2(float value) {
  return float_to_small<kE5m2, uint8_t>(value);
}
constexpr float e4m3_to_float(uint8_t bits) {
  return small_to_float<kE4m3>(bits);
}
constexpr uint8_t float_to_e4m3(float value) {
  return float_to_small<kE4m3, uint8_t>(value);
}

constexpr float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
constexpr uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace trestle
