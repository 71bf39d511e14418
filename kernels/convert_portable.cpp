// Conversions as plain loops, used in all builds. See convert.h for the contract.
#include "base/check.h"
#include "kernels/convert.h"
#include "kernels/elements.h"

namespace trestle {
namespace {

using kernels::Element;

template <DataType type>
void widen_loop(float* dst, const std::byte* src, size_t elements) {
  typename Element<type>::Stored stored;
  for (size_t i = 0; i < elements; ++i) {
    std::memcpy(&stored, src + i * sizeof(stored), sizeof(stored));
    dst[i] = Element<type>::widen(stored);
  }
}

template <DataType type>
void narrow_loop(std::byte* dst, const float* src, size_t elements) {
  for (size_t i = 0; i < elements; ++i) {
    const typename Element<type>::Stored stored = Element<type>::narrow(src[i]);
    std::memcpy(dst + i * sizeof(stored), &stored, sizeof(stored));
  }
}

template <DataType type>
void scale_loop(std::byte* dst, const std::byte* src, size_t elements, double factor) {
  using E = Element<type>;
  const auto rounded_factor = static_cast<typename E::Value>(factor);
  typename E::Stored stored;
  for (size_t i = 0; i < elements; ++i) {
    std::memcpy(&stored, src + i * sizeof(stored), sizeof(stored));
    stored = E::narrow(E::widen(stored) * rounded_factor);
    std::memcpy(dst + i * sizeof(stored), &stored, sizeof(stored));
  }
}

}  // namespace

void widen_to_float32(float* dst, const std::byte* src, size_t elements, DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return widen_loop<DataType::kFloat16>(dst, src, elements);
    case DataType::kBfloat16:
      return widen_loop<DataType::kBfloat16>(dst, src, elements);
    case DataType::kFloat8e4m3:
      return widen_loop<DataType::kFloat8e4m3>(dst, src, elements);
    case DataType::kFloat8e5m2:
      return widen_loop<DataType::kFloat8e5m2>(dst, src, elements);
    case DataType::kFloat32:
      return widen_loop<DataType::kFloat32>(dst, src, elements);
    default:
      CHECK(false, "only floating point types up to 32 bits widen to float32");
  }
}

void narrow_from_float32(std::byte* dst, const float* src, size_t elements, DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return narrow_loop<DataType::kFloat16>(dst, src, elements);
    case DataType::kBfloat16:
      return narrow_loop<DataType::kBfloat16>(dst, src, elements);
    case DataType::kFloat8e4m3:
      return narrow_loop<DataType::kFloat8e4m3>(dst, src, elements);
    case DataType::kFloat8e5m2:
      return narrow_loop<DataType::kFloat8e5m2>(dst, src, elements);
    case DataType::kFloat32:
      return narrow_loop<DataType::kFloat32>(dst, src, elements);
    default:
      CHECK(false, "float32 narrows only to floating point types up to 32 bits");
  }
}

void scale(std::byte* dst, const std::byte* src, size_t elements, DataType type, double factor) {
  switch (type) {
    case DataType::kFloat16:
      return scale_loop<DataType::kFloat16>(dst, src, elements, factor);
    case DataType::kBfloat16:
      return scale_loop<DataType::kBfloat16>(dst, src, elements, factor);
    case DataType::kFloat8e4m3:
      return scale_loop<DataType::kFloat8e4m3>(dst, src, elements, factor);
    case DataType::kFloat8e5m2:
      return scale_loop<DataType::kFloat8e5m2>(dst, src, elements, factor);
    case DataType::kFloat32:
      return scale_loop<DataType::kFloat32>(dst, src, elements, factor);
    case DataType::kFloat64:
      return scale_loop<DataType::kFloat64>(dst, src, elements, factor);
    default:
      CHECK(false, "only floating point types can be scaled");
  }
}

}  // namespace trestle
