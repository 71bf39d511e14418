// Copies of rows and of runs, those of the board of devices, and conversions between the small floats and float32. See
// kernels/copy.h and kernels/convert.h.
#include "kernels/cuda/access.cuh"
#include "kernels/cuda/board_body.h"
#include "kernels/cuda/board_machine.cuh"
#include "kernels/elements.h"

namespace trestle::kernels {
namespace {

constexpr uint32_t kLoadsTogether = 8;

template <class Pack>
__device__ void copy_packs(const PackedRange& range, unsigned char* dst, const unsigned char* src) {
  const auto* const from = reinterpret_cast<const Pack*>(src + range.head);
  auto* const to = reinterpret_cast<Pack*>(dst + range.head);
  const auto one = [&](uint64_t pack) { to[pack] = __ldcs(from + pack); };
  const auto several = [&](uint64_t pack, uint32_t stride) {
    Pack loaded[kLoadsTogether];
#pragma unroll
    for (uint32_t p = 0; p < kLoadsTogether; ++p) loaded[p] = __ldcs(from + pack + p * stride);
#pragma unroll
    for (uint32_t p = 0; p < kLoadsTogether; ++p) to[pack + p * stride] = loaded[p];
  };
  for_packs<kLoadsTogether>(range.packs, several, one);
  for_single_elements<sizeof(Pack)>(range, [&](uint64_t i) { dst[i] = src[i]; });
}

__device__ void copy_row(const PackedRange& range, unsigned char* dst, const unsigned char* src) {
  switch (range.pack_bytes) {
    case 16:
      return copy_packs<uint4>(range, dst, src);
    case 8:
      return copy_packs<uint2>(range, dst, src);
    case 4:
      return copy_packs<uint32_t>(range, dst, src);
    case 2:
      return copy_packs<uint16_t>(range, dst, src);
    default:
      return copy_packs<unsigned char>(range, dst, src);
  }
}

// A pack of the small type becomes several packs of floats.
template <class E>
struct Converter {
  using Stored = typename E::Stored;
  static constexpr uint32_t kPerPack = kPackBytes / sizeof(Stored);
  static constexpr uint32_t kFloatPacks = sizeof(float) / sizeof(Stored);

  __device__ static void widen(const CudaConvert& work) {
    const auto* const src = static_cast<const unsigned char*>(work.src);
    auto* const dst = static_cast<unsigned char*>(work.dst);
    for (uint64_t p = thread_of_grid(); p < work.range.packs; p += threads_of_grid()) {
      const uint4 pack = load_pack(src, p);
      Stored small[kPerPack];
      memcpy(small, &pack, kPackBytes);
      float values[kPerPack];
#pragma unroll
      for (uint32_t i = 0; i < kPerPack; ++i) values[i] = E::widen(small[i]);
      uint4 packs[kFloatPacks];
      memcpy(packs, values, sizeof(values));
#pragma unroll
      for (uint32_t i = 0; i < kFloatPacks; ++i) store_pack(dst, p * kFloatPacks + i, packs[i]);
    }
    const bool aligned = work.range.elements_are_aligned != 0;
    for_single_elements<kPerPack>(work.range, [&](uint64_t i) {
      store_one(work.dst, i, E::widen(load_one<Stored>(work.src, i, aligned)), aligned);
    });
  }

  __device__ static void narrow(const CudaConvert& work) {
    const auto* const src = static_cast<const unsigned char*>(work.src);
    auto* const dst = static_cast<unsigned char*>(work.dst);
    for (uint64_t p = thread_of_grid(); p < work.range.packs; p += threads_of_grid()) {
      uint4 packs[kFloatPacks];
#pragma unroll
      for (uint32_t i = 0; i < kFloatPacks; ++i) packs[i] = load_pack(src, p * kFloatPacks + i);
      float values[kPerPack];
      memcpy(values, packs, sizeof(values));
      Stored small[kPerPack];
#pragma unroll
      for (uint32_t i = 0; i < kPerPack; ++i) small[i] = E::narrow(values[i]);
      uint4 pack;
      memcpy(&pack, small, kPackBytes);
      store_pack(dst, p, pack);
    }
    const bool aligned = work.range.elements_are_aligned != 0;
    for_single_elements<kPerPack>(work.range, [&](uint64_t i) {
      store_one(work.dst, i, E::narrow(load_one<float>(work.src, i, aligned)), aligned);
    });
  }
};

}  // namespace
}  // namespace trestle::kernels

// Blocks in y take rows.
extern "C" __global__ void __launch_bounds__(256) copy_rows(const __grid_constant__ trestle::kernels::CudaCopy work) {
  for (uint64_t row = blockIdx.y; row < work.rows; row += gridDim.y) {
    trestle::kernels::copy_row(work.range, static_cast<unsigned char*>(work.dst) + row * work.dst_stride,
                               static_cast<const unsigned char*>(work.src) + row * work.src_stride);
  }
}

// Blocks in y take runs, which have nothing to do with each other.
extern "C" __global__ void __launch_bounds__(256)
    copy_runs(const __grid_constant__ trestle::kernels::CudaCopyRuns work) {
  for (uint32_t i = blockIdx.y; i < work.count; i += gridDim.y) {
    const trestle::kernels::CudaRun& run = work.runs[i];
    trestle::kernels::copy_row(run.range, static_cast<unsigned char*>(run.dst),
                               static_cast<const unsigned char*>(run.src));
  }
}

#define TRESTLE_CONVERT(name, type)                                                                \
  extern "C" __global__ void __launch_bounds__(256)                                                \
      widen_##name(const __grid_constant__ trestle::kernels::CudaConvert work) {                   \
    trestle::kernels::Converter<trestle::kernels::Element<trestle::DataType::type>>::widen(work);  \
  }                                                                                                \
  extern "C" __global__ void __launch_bounds__(256)                                                \
      narrow_##name(const __grid_constant__ trestle::kernels::CudaConvert work) {                  \
    trestle::kernels::Converter<trestle::kernels::Element<trestle::DataType::type>>::narrow(work); \
  }
TRESTLE_CONVERT(half, kFloat16)
TRESTLE_CONVERT(bfloat16, kBfloat16)
TRESTLE_CONVERT(f8e4m3, kFloat8e4m3)
TRESTLE_CONVERT(f8e5m2, kFloat8e5m2)

// The board of devices: small collectives that copy, among ranks of one host (board.h).
extern "C" __global__ void __launch_bounds__(trestle::kernels::kBoardThreads)
    board_copy(const __grid_constant__ trestle::kernels::CudaBoardCall call) {
  trestle::kernels::run_board<trestle::kernels::CudaMachine, trestle::kernels::Copies>({}, call);
}
