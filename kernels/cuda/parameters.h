// What a launch tells the kernels of kernels/cuda. Plain values that host and device share, any thread.
//
// The kernels move 16 bytes per access, a pack. Only elements between the first and the last whole pack can be moved
// so, and only if all buffers are equally far from a 16-byte boundary. Copies have smaller packs where buffers are
// equally far from a smaller boundary. The host decides that (launch_plan.h), and the kernels find it here.
#pragma once

#include <cstdint>

namespace trestle::kernels {

inline constexpr uint32_t kPackBytes = 16;
inline constexpr uint32_t kMostCudaSources = 128;
inline constexpr uint32_t kMostCudaRuns = 64;

// Elements [0, head) and those after head + packs * elements per pack are moved one at a time.
struct PackedRange {
  uint64_t elements = 0;
  uint64_t head = 0;
  uint64_t packs = 0;
  // Each buffer begins at a multiple of the element's size. Else elements are moved byte by byte.
  uint32_t elements_are_aligned = 0;
  uint32_t pack_bytes = kPackBytes;  // copies: 16, 8, 4, 2 or 1
};

struct CudaReduce {
  PackedRange range;
  void* dst = nullptr;
  uint32_t source_count = 0;
  uint32_t average_over = 0;                  // ReduceSpec::average_over
  float share = 1;                            // 1 / average_over, for types that are multiplied before they are added
  uint32_t sums[kMostCudaSources / 32] = {};  // ReduceSpec::sums, a bit per source
  const void* sources[kMostCudaSources] = {};
};

struct CudaScale {
  PackedRange range;
  void* dst = nullptr;
  const void* src = nullptr;
  alignas(8) unsigned char factor[8] = {};  // one element
};

// Rows of equal length. The range counts bytes of one row.
struct CudaCopy {
  PackedRange range;
  void* dst = nullptr;
  const void* src = nullptr;
  uint64_t rows = 0;
  uint64_t dst_stride = 0;  // bytes
  uint64_t src_stride = 0;
};

// Copies of several contiguous runs. Each range counts bytes.
struct CudaRun {
  PackedRange range;
  void* dst = nullptr;
  const void* src = nullptr;
};
struct CudaCopyRuns {
  uint32_t count = 0;
  CudaRun runs[kMostCudaRuns];
};

}  // namespace trestle::kernels
