// Reference results of reductions and conversions by the types of the library (elements.h has those of the public API).
// For tests only; any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/types.h"
#include "support/elements.h"

namespace trestle::reference {

// A type's number is that of the public API.
inline trestleDataType_t public_type(DataType type) {
  return static_cast<trestleDataType_t>(type);
}
inline float decode_small(uint32_t bits, DataType type) {
  return static_cast<float>(elements::decode(public_type(type), bits));
}
inline uint32_t encode_small(float value, DataType type) {
  return static_cast<uint32_t>(elements::encode(public_type(type), static_cast<double>(value)));
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
  return elements::is_nan(public_type(type), elements::load(public_type(type), from, index));
}

}  // namespace trestle::reference
