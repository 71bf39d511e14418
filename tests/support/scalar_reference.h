// Reference results of reductions and conversions, computed in the slow and obvious way: small floats through their
// real values (ldexp, nearbyint in double), without the bit tricks of kernels/. For tests only; any thread.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/types.h"

namespace trestle::reference {

struct Format {
  int mantissa_bits;
  int bias;
  double largest;
  // Bits of values beyond the largest one; for e4m3 its NaN.
  uint32_t infinity;
  uint32_t nan;
  int sign_bit;
};

inline Format format_of(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {10, 15, 65504.0, 0x7c00, 0x7e00, 15};
    case DataType::kBfloat16:
      return {7, 127, std::ldexp(255.0, 120), 0x7f80, 0x7fc0, 15};
    case DataType::kFloat8e4m3:
      return {3, 7, 448.0, 0x7f, 0x7f, 7};
    default:
      return {2, 15, 57344.0, 0x7c, 0x7e, 7};  // e5m2
  }
}

inline float decode_small(uint32_t bits, DataType type) {
  const Format f = format_of(type);
  const bool negative = (bits >> f.sign_bit) & 1u;
  const uint32_t magnitude = bits & ((1u << f.sign_bit) - 1u);
  double value = 0;
  if (magnitude >= f.infinity) {
    const bool infinite = magnitude == f.infinity && f.infinity != f.nan;
    value = infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
    const auto mantissa = static_cast<int>(magnitude & ((1u << f.mantissa_bits) - 1u));
    const int implicit = exponent == 0 ? 0 : 1 << f.mantissa_bits;
    value = std::ldexp(implicit + mantissa, std::max(exponent, 1) - f.bias - f.mantissa_bits);
  }
  return static_cast<float>(negative ? -value : value);
}

inline uint32_t encode_small(float value, DataType type) {
  const Format f = format_of(type);
  const uint32_t sign = std::signbit(value) ? 1u << f.sign_bit : 0u;
  if (std::isnan(value)) return sign | f.nan;
  if (std::isinf(value)) return sign | f.infinity;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  const int smallest = 1 - f.bias;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(magnitude), smallest) - f.mantissa_bits);
  // The default rounding mode: to nearest, ties to even.
  const double rounded = std::nearbyint(magnitude / unit) * unit;
  if (rounded > f.largest) return sign | f.infinity;
  const int exponent = rounded == 0 ? smallest - 1 : std::ilogb(rounded);
  if (exponent < smallest) return sign | static_cast<uint32_t>(std::ldexp(rounded, f.mantissa_bits - smallest));
  const auto significand = static_cast<uint32_t>(std::ldexp(rounded, f.mantissa_bits - exponent));
  return sign | (static_cast<uint32_t>(exponent + f.bias) << f.mantissa_bits) | (significand - (1u << f.mantissa_bits));
}

// All 2^16 (or 2^8) values of a small type in a table, because decoding one at a time is slow.
inline const std::vector<float>& small_values(DataType type) {
  static const auto tables = [] {
    std::vector<std::vector<float>> all(kDataTypes);
    for (size_t t = 0; t < kDataTypes; ++t) {
      const auto small = static_cast<DataType>(t);
      if (!is_float(small) || size_of(small) > 2) continue;
      all[t].resize(size_t{1} << (8 * size_of(small)));
      for (uint32_t bits = 0; bits < all[t].size(); ++bits) all[t][bits] = decode_small(bits, small);
    }
    return all;
  }();
  return tables[static_cast<size_t>(type)];
}

template <class T>
T combine(T a, T b, ReduceOp op) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == ReduceOp::kMax || op == ReduceOp::kMin) {
      if (std::isnan(b)) return b;
      if (std::isnan(a)) return a;
      return (op == ReduceOp::kMax ? b > a : b < a) ? b : a;
    }
    return op == ReduceOp::kProd ? a * b : a + b;
  } else {
    if (op == ReduceOp::kMax) return b > a ? b : a;
    if (op == ReduceOp::kMin) return b < a ? b : a;
    using Wide = unsigned __int128;
    return static_cast<T>(op == ReduceOp::kProd ? static_cast<Wide>(a) * static_cast<Wide>(b)
                                                : static_cast<Wide>(a) + static_cast<Wide>(b));
  }
}

template <class T>
T load(const std::byte* from, size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
T average(T value, uint32_t over) {
  if (over == 0) return value;
  if constexpr (std::is_floating_point_v<T>) {
    return value / static_cast<T>(over);
  } else {
    return static_cast<T>(static_cast<__int128>(value) / static_cast<__int128>(over));
  }
}

template <class T>
void reduce_plain(std::byte* dst, const std::vector<const std::byte*>& sources, size_t elements, ReduceOp op,
                  uint32_t average_over) {
  for (size_t i = 0; i < elements; ++i) {
    T value = load<T>(sources[0], i);
    for (size_t s = 1; s < sources.size(); ++s) value = combine(value, load<T>(sources[s], i), op);
    value = average(value, average_over);
    std::memcpy(dst + i * sizeof(T), &value, sizeof(T));
  }
}

// What a rank adds to an average of small floats: its number times the float32 next to 1 / over, as a float32. The
// double product is exact, so it is rounded once.
inline float share(float value, uint32_t over) {
  const auto factor = static_cast<float>(1.0 / over);
  return static_cast<float>(static_cast<double>(value) * static_cast<double>(factor));
}

// sums: which sources are sums of shares already; empty: none.
template <class Bits>
void reduce_small(std::byte* dst, const std::vector<const std::byte*>& sources, size_t elements, DataType type,
                  ReduceOp op, uint32_t average_over, const std::vector<uint8_t>& sums) {
  const std::vector<float>& values = small_values(type);
  const auto added = [&](size_t source, size_t i) {
    const float value = values[load<Bits>(sources[source], i)];
    return average_over == 0 || (!sums.empty() && sums[source] != 0) ? value : share(value, average_over);
  };
  for (size_t i = 0; i < elements; ++i) {
    float value = added(0, i);
    for (size_t s = 1; s < sources.size(); ++s) value = combine(value, added(s, i), op);
    const auto bits = static_cast<Bits>(encode_small(value, type));
    std::memcpy(dst + i * sizeof(Bits), &bits, sizeof(Bits));
  }
}

// dst must be disjoint from the sources.
inline void reduce(std::byte* dst, const std::vector<const std::byte*>& sources, size_t elements, DataType type,
                   ReduceOp op, uint32_t average_over, const std::vector<uint8_t>& sums = {}) {
  switch (type) {
    case DataType::kInt8:
      return reduce_plain<int8_t>(dst, sources, elements, op, average_over);
    case DataType::kUint8:
      return reduce_plain<uint8_t>(dst, sources, elements, op, average_over);
    case DataType::kInt32:
      return reduce_plain<int32_t>(dst, sources, elements, op, average_over);
    case DataType::kUint32:
      return reduce_plain<uint32_t>(dst, sources, elements, op, average_over);
    case DataType::kInt64:
      return reduce_plain<int64_t>(dst, sources, elements, op, average_over);
    case DataType::kUint64:
      return reduce_plain<uint64_t>(dst, sources, elements, op, average_over);
    case DataType::kFloat32:
      return reduce_plain<float>(dst, sources, elements, op, average_over);
    case DataType::kFloat64:
      return reduce_plain<double>(dst, sources, elements, op, average_over);
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return reduce_small<uint16_t>(dst, sources, elements, type, op, average_over, sums);
    default:
      return reduce_small<uint8_t>(dst, sources, elements, type, op, average_over, sums);
  }
}

inline bool is_nan(const std::byte* from, size_t index, DataType type) {
  if (type == DataType::kFloat32) return std::isnan(load<float>(from, index));
  if (type == DataType::kFloat64) return std::isnan(load<double>(from, index));
  if (!is_float(type)) return false;
  const uint32_t bits = size_of(type) == 2 ? load<uint16_t>(from, index) : load<uint8_t>(from, index);
  return std::isnan(small_values(type)[bits]);
}

}  // namespace trestle::reference
