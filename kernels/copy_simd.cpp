// Copies for builds with Highway: non-temporal stores of the widest vectors that this CPU has.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/copy_simd.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "kernels/copy.h"

HWY_BEFORE_NAMESPACE();
namespace trestle::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void stream_copy(std::byte* dst, const std::byte* src, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t vector_bytes = hn::Lanes(d);
  const size_t head = (vector_bytes - reinterpret_cast<uintptr_t>(dst) % vector_bytes) % vector_bytes;
  std::memcpy(dst, src, head);
  auto* to = reinterpret_cast<uint8_t*>(dst);
  const auto* from = reinterpret_cast<const uint8_t*>(src);
  size_t i = head;
  for (; i + 4 * vector_bytes <= bytes; i += 4 * vector_bytes) {
    const auto v0 = hn::LoadU(d, from + i);
    const auto v1 = hn::LoadU(d, from + i + vector_bytes);
    const auto v2 = hn::LoadU(d, from + i + 2 * vector_bytes);
    const auto v3 = hn::LoadU(d, from + i + 3 * vector_bytes);
    hn::Stream(v0, d, to + i);
    hn::Stream(v1, d, to + i + vector_bytes);
    hn::Stream(v2, d, to + i + 2 * vector_bytes);
    hn::Stream(v3, d, to + i + 3 * vector_bytes);
  }
  std::memcpy(dst + i, src + i, bytes - i);
  hwy::FlushStream();
}

}  // namespace trestle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trestle {
namespace {
HWY_EXPORT(stream_copy);
// Below this size, alignment and the flush cost more than non-temporal stores save.
constexpr size_t kLeastStreamedBytes = 4096;
}  // namespace

void copy(std::byte* dst, const std::byte* src, size_t bytes, bool streaming) {
  if (bytes == 0 || dst == src) return;
  if (streaming && bytes >= kLeastStreamedBytes) return HWY_DYNAMIC_DISPATCH(stream_copy)(dst, src, bytes);
  std::memcpy(dst, src, bytes);
}
}  // namespace trestle
#endif
