// CudaMachine: the Machine of board_body.h on a GPU.
//
// Lines and words are accessed by strong operations of the whole system (PTX ISA, memory consistency model): a line is
// never torn, and peers and the host see it without a fence. To that model, an access of two lines is one of each, in
// no order. A warp's accesses of two lines fill whole sectors of the memory.
#pragma once

#include <cstdint>

#include "kernels/cuda/board.h"

namespace trestle::kernels {

class CudaMachine {
 public:
  __device__ uint32_t thread() const { return threadIdx.x; }
  __device__ uint32_t threads() const { return kBoardThreads; }
  __device__ uint32_t data_threads() const { return kBoardDataThreads; }
  __device__ uint32_t block() const { return blockIdx.x; }
  __device__ uint32_t blocks() const { return gridDim.x; }

  __device__ BoardLines load_lines(const uint64_t* at) const {
    BoardLines lines;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(lines.low), "=l"(lines.high)
                 : "l"(at)
                 : "memory");
    return lines;
  }
  __device__ void store_lines(uint64_t* at, BoardLines lines) const {
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(lines.low), "l"(lines.high) : "memory");
  }
  __device__ void store_line(uint64_t* at, uint64_t line) const {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(line) : "memory");
  }
  __device__ uint32_t load_word(const uint32_t* at) const {
    uint32_t word;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
    return word;
  }
  __device__ void store_word(uint32_t* at, uint32_t word) const {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(word) : "memory");
  }
  __device__ void fence() const { asm volatile("fence.sc.sys;" ::: "memory"); }
  __device__ void release() const { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
  __device__ void sync() const { __syncthreads(); }
  __device__ bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
  __device__ void pause() const { __nanosleep(1000); }
  __device__ uint32_t add(uint32_t* word, uint32_t value) const { return atomicAdd(word, value) + value; }
};

}  // namespace trestle::kernels
