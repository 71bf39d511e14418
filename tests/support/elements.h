// Elements of the data types of the public API, computed in the slow and obvious way: floats through their real values
// (ldexp, nearbyint in double), without the bit tricks of kernels/ and perf/. For tests only; any thread.
#pragma once

#include <trestle/trestle.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace elements {

struct Format {
  const char* name;
  size_t size;
  bool is_signed;
  int exponent_bits;
  int mantissa_bits;  // 0: an integer
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

inline const Format& format_of(trestleDataType_t type) {
  static constexpr Format kFormats[trestleNumTypes] = {
      {"int8", 1, true, 0, 0},     {"uint8", 1, false, 0, 0},     {"int32", 4, true, 0, 0},
      {"uint32", 4, false, 0, 0},  {"int64", 8, true, 0, 0},      {"uint64", 8, false, 0, 0},
      {"float16", 2, true, 5, 10}, {"float32", 4, true, 8, 23},   {"float64", 8, true, 11, 52},
      {"bfloat16", 2, true, 8, 7}, {"float8e4m3", 1, true, 4, 3}, {"float8e5m2", 1, true, 5, 2}};
  return kFormats[static_cast<size_t>(type)];
}

inline size_t size_of(trestleDataType_t type) {
  return format_of(type).size;
}
inline bool is_float(trestleDataType_t type) {
  return format_of(type).mantissa_bits != 0;
}

inline uint64_t truncate(trestleDataType_t type, uint64_t bits) {
  return bits & ~uint64_t{0} >> (64 - 8 * size_of(type));
}
inline int64_t sign_extend(trestleDataType_t type, uint64_t bits) {
  const int unused = 64 - 8 * static_cast<int>(size_of(type));
  return static_cast<int64_t>(bits << unused) >> unused;
}
inline uint64_t sign_bit(trestleDataType_t type) {
  return uint64_t{1} << (8 * size_of(type) - 1);
}

// The bits of the largest finite number. Next comes infinity; e4m3 has none, only one NaN per sign.
inline uint64_t largest(trestleDataType_t type) {
  const Format& f = format_of(type);
  if (type == trestleFloat8e4m3) return 0x7e;
  return (((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits) - 1;
}

inline bool is_nan(trestleDataType_t type, uint64_t bits) {
  const uint64_t magnitude = bits & (sign_bit(type) - 1);
  return is_float(type) && magnitude > largest(type) + (type == trestleFloat8e4m3 ? 0 : 1);
}

// The bits of a number: floats are rounded to nearest even, integers to zero.
inline uint64_t encode(trestleDataType_t type, double value) {
  if (!is_float(type)) return truncate(type, static_cast<uint64_t>(static_cast<int64_t>(value)));
  if (type == trestleFloat64) return std::bit_cast<uint64_t>(value);
  if (type == trestleFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const Format& f = format_of(type);
  const uint64_t sign = std::signbit(value) ? sign_bit(type) : 0;
  if (std::isnan(value)) return sign | (sign_bit(type) - 1);
  if (value == 0) return sign;
  if (std::isinf(value)) return sign | (largest(type) + 1);
  int exponent = 0;
  std::frexp(value, &exponent);  // to [0.5, 1)
  exponent = std::max(exponent - 1, 1 - f.bias());
  const double digits = std::nearbyint(std::ldexp(std::fabs(value), f.mantissa_bits - exponent));
  // The first digit, which is not stored, counts the exponent up by one; a digit more, of what was rounded up, by two.
  const uint64_t magnitude =
      (static_cast<uint64_t>(exponent + f.bias() - 1) << f.mantissa_bits) + static_cast<uint64_t>(digits);
  return sign | std::min(magnitude, largest(type) + 1);
}

inline double decode(trestleDataType_t type, uint64_t bits) {
  if (type == trestleFloat64) return std::bit_cast<double>(bits);
  if (type == trestleFloat32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (is_nan(type, bits)) return NAN;
  const Format& f = format_of(type);
  const double sign = (bits & sign_bit(type)) != 0 ? -1.0 : 1.0;
  const uint64_t magnitude = bits & (sign_bit(type) - 1);
  if (magnitude > largest(type)) return sign * HUGE_VAL;
  const auto exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const uint64_t one = uint64_t{1} << f.mantissa_bits;
  const uint64_t digits = (exponent == 0 ? 0 : one) + (magnitude & (one - 1));
  return sign * std::ldexp(static_cast<double>(digits), std::max(exponent, 1) - f.bias() - f.mantissa_bits);
}

inline uint64_t load(trestleDataType_t type, const void* from, size_t index) {
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(from) + index * size_of(type), size_of(type));
  return bits;
}
inline void store(trestleDataType_t type, void* to, size_t index, uint64_t bits) {
  std::memcpy(static_cast<char*>(to) + index * size_of(type), &bits, size_of(type));
}

// Two values of an operator become one; those of an average are added.
inline double fold_floats(trestleRedOp_t op, double a, double b) {
  const bool nan = std::isnan(a) || std::isnan(b);
  if (op == trestleMax) return nan ? NAN : std::max(a, b);
  if (op == trestleMin) return nan ? NAN : std::min(a, b);
  return op == trestleProd ? a * b : a + b;
}
inline uint64_t fold_integers(trestleDataType_t type, trestleRedOp_t op, uint64_t a, uint64_t b) {
  const bool less = format_of(type).is_signed ? sign_extend(type, a) < sign_extend(type, b) : a < b;
  if (op == trestleMax) return less ? b : a;
  if (op == trestleMin) return less ? a : b;
  return truncate(type, op == trestleProd ? a * b : a + b);
}
inline uint64_t divide_integer(trestleDataType_t type, uint64_t sum, int by) {
  if (!format_of(type).is_signed) return sum / static_cast<uint64_t>(by);
  return truncate(type, static_cast<uint64_t>(sign_extend(type, sum) / by));
}

}  // namespace elements
