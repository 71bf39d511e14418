// Encodes numbers as element types, for the verification data. Deliberately independent of the library's own
// conversions: an error in their tables must not cancel out here.
//
// Each codec has: Word (the unsigned integer of the element's size), Real (the type of computations), encode(), the
// number of significant binary digits, and the largest finite positive bit pattern. Branch-free, so that loops over it
// are vectorised.
#pragma once

#include <bit>
#include <cstdint>

namespace trestle::perf {

// A float with kExponentBits and kMantissaBits, IEEE layout, rounded to nearest even, with subnormals. The caller must
// not pass values beyond the largest finite one: the data of pattern.cpp stays far below it.
template <class W, int kExponentBits, int kMantissaBits, uint32_t kMaxFinite>
struct SmallFloat {
  using Word = W;
  using Real = float;
  static constexpr int kDigits = kMantissaBits + 1;
  static constexpr Word kLargest = static_cast<Word>(kMaxFinite);

  static Word encode(float value) {
    constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
    constexpr int kShift = 23 - kMantissaBits;
    constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;
    constexpr uint32_t kSmallestNormal = kRebias + (1u << 23);
    // Adding this number moves the subnormal's digits to the end of the sum's mantissa, rounded by the adder.
    constexpr uint32_t kMagic = static_cast<uint32_t>(127 - kBias + kShift + 1) << 23;
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t sign = (bits >> 31) << (kExponentBits + kMantissaBits);
    const uint32_t rounded = magnitude + ((1u << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1u);
    const uint32_t normal = (rounded - kRebias) >> kShift;
    const uint32_t tiny =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic)) - kMagic;
    return static_cast<Word>(sign | (magnitude < kSmallestNormal ? tiny : normal));
  }
};

using Float16 = SmallFloat<uint16_t, 5, 10, 0x7bff>;
using Bfloat16 = SmallFloat<uint16_t, 8, 7, 0x7f7f>;
using Float8e4m3 = SmallFloat<uint8_t, 4, 3, 0x7e>;  // no infinity: 0x7f is the NaN, exponent 15 is used
using Float8e5m2 = SmallFloat<uint8_t, 5, 2, 0x7b>;

struct Float32 {
  using Word = uint32_t;
  using Real = float;
  static constexpr int kDigits = 24;
  static constexpr Word kLargest = 0x7f7fffffu;
  static Word encode(float value) { return std::bit_cast<uint32_t>(value); }
};

struct Float64 {
  using Word = uint64_t;
  using Real = double;
  static constexpr int kDigits = 53;
  static constexpr Word kLargest = 0x7fefffffffffffffull;
  static Word encode(double value) { return std::bit_cast<uint64_t>(value); }
};

}  // namespace trestle::perf
