// Copies of rows and of runs, and those of the board of devices. See kernels/copy.h.
#include "kernels/cuda/access.cuh"
#include "kernels/cuda/board_body.h"
#include "kernels/cuda/board_machine.cuh"

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

// The board of devices: small collectives that copy, among ranks of one host (board.h).
extern "C" __global__ void __launch_bounds__(trestle::kernels::kBoardThreads)
    board_copy(const __grid_constant__ trestle::kernels::CudaBoardCall call) {
  trestle::kernels::run_board<trestle::kernels::CudaMachine, trestle::kernels::Copies>({}, call);
}
