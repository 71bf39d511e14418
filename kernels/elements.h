// How each element type is loaded, folded and stored by the portable loops and by the kernels for GPUs. Internal to
// kernels/, pure, any thread. All of it is constexpr: then nvcc compiles the same functions for the device, so equal
// bits on both need no proof of their own.
//
// Element<type>: Stored is the type in memory, Value the type that is folded. kScalesFirst: an average multiplies what
// it adds, instead of dividing the sum (ReduceSpec::average_over).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/types.h"
#include "kernels/small_float.h"

namespace trestle::kernels {

template <class T>
struct PlainElement {
  using Stored = T;
  using Value = T;
  static constexpr bool kScalesFirst = false;
  static constexpr Value widen(Stored stored) { return stored; }
  static constexpr Stored narrow(Value value) { return value; }
};

template <class StoredType, float (*kWiden)(StoredType), StoredType (*kNarrow)(float)>
struct SmallElement {
  using Stored = StoredType;
  using Value = float;
  static constexpr bool kScalesFirst = true;
  static constexpr Value widen(Stored stored) { return kWiden(stored); }
  static constexpr Stored narrow(Value value) { return kNarrow(value); }
};

template <DataType>
struct Element;
template <>
struct Element<DataType::kInt8> : PlainElement<int8_t> {};
template <>
struct Element<DataType::kUint8> : PlainElement<uint8_t> {};
template <>
struct Element<DataType::kInt32> : PlainElement<int32_t> {};
template <>
struct Element<DataType::kUint32> : PlainElement<uint32_t> {};
template <>
struct Element<DataType::kInt64> : PlainElement<int64_t> {};
template <>
struct Element<DataType::kUint64> : PlainElement<uint64_t> {};
template <>
struct Element<DataType::kFloat32> : PlainElement<float> {};
template <>
struct Element<DataType::kFloat64> : PlainElement<double> {};
template <>
struct Element<DataType::kFloat16> : SmallElement<uint16_t, half_to_float, float_to_half> {};
template <>
struct Element<DataType::kBfloat16> : SmallElement<uint16_t, bfloat16_to_float, float_to_bfloat16> {};
template <>
struct Element<DataType::kFloat8e4m3> : SmallElement<uint8_t, e4m3_to_float, float_to_e4m3> {};
template <>
struct Element<DataType::kFloat8e5m2> : SmallElement<uint8_t, e5m2_to_float, float_to_e5m2> {};

template <ReduceOp op, class Value>
constexpr Value fold(Value a, Value b) {
  if constexpr (op == ReduceOp::kMax) {
    // A NaN (b != b) replaces the accumulator and stays there, because every later comparison fails.
    return (a < b || b != b) ? b : a;
  } else if constexpr (op == ReduceOp::kMin) {
    return (b < a || b != b) ? b : a;
  } else if constexpr (std::is_floating_point_v<Value>) {
    return op == ReduceOp::kProd ? a * b : a + b;
  } else {
    // Unsigned, because signed overflow is undefined; 64 bits wide, because narrow types would be promoted to int.
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    return static_cast<Value>(op == ReduceOp::kProd ? x * y : x + y);
  }
}

// Integers are rounded towards zero. A GPU takes four times as long to divide 64 bits as 32, so types that have no more
// are divided as magnitudes: these fit, and any divisor does.
template <class Value>
constexpr Value divide(Value value, uint32_t divisor) {
  if constexpr (std::is_floating_point_v<Value>) {
    return value / static_cast<Value>(divisor);
  } else if constexpr (std::is_signed_v<Value> && sizeof(Value) <= sizeof(uint32_t)) {
    const auto bits = static_cast<uint32_t>(value);
    const uint32_t quotient = (value < 0 ? 0u - bits : bits) / divisor;
    return static_cast<Value>(value < 0 ? 0u - quotient : quotient);
  } else if constexpr (std::is_signed_v<Value>) {
    return static_cast<Value>(static_cast<int64_t>(value) / static_cast<int64_t>(divisor));
  } else {
    return static_cast<Value>(value / divisor);
  }
}

// What a source of an average is multiplied by, where kScalesFirst.
constexpr float average_factor(uint32_t average_over, bool is_sum) {
  return is_sum || average_over == 0 ? 1.0f : 1.0f / static_cast<float>(average_over);
}

}  // namespace trestle::kernels
