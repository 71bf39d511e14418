#include "gradient/executor/nan_count.h"

#include <cstring>

namespace trestle {
namespace {

// The bits of a NaN without the sign, read as an integer, are above those of infinity.
template <class Bits>
uint64_t count_above(const std::byte* data, uint64_t count, Bits infinity) {
  constexpr Bits kWithoutSign = static_cast<Bits>(~Bits{0}) >> 1;
  uint64_t nans = 0;
  for (uint64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof bits, sizeof bits);
    nans += (bits & kWithoutSign) > infinity;
  }
  return nans;
}

}  // namespace

uint64_t count_nans(const std::byte* data, uint64_t count, DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return count_above<uint64_t>(data, count, 0x7ff0'0000'0000'0000);
    case DataType::kFloat32:
      return count_above<uint32_t>(data, count, 0x7f80'0000);
    case DataType::kBfloat16:
      return count_above<uint16_t>(data, count, 0x7f80);
    case DataType::kFloat16:
      return count_above<uint16_t>(data, count, 0x7c00);
    case DataType::kFloat8e5m2:
      return count_above<uint8_t>(data, count, 0x7c);
    case DataType::kFloat8e4m3:  // it has no infinity, and one NaN
      return count_above<uint8_t>(data, count, 0x7e);
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kInt64:
    case DataType::kUint64:
      return 0;
  }
  return 0;
}

}  // namespace trestle
