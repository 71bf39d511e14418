// Reductions and scaling of one element type on a GPU. See kernels/reduce.h and kernels/scale.h for the contract.
//
// CMake compiles this file once per type, with TRESTLE_ELEMENT set to its enumerator: one image per type, in which the
// kernels have short names (launch_plan.h). A thread loads a pack of every source before it folds, so that enough bytes
// are on their way, and stores after that, so that the destination may be one of the sources. The functions that fold
// and round are those of the CPU, or have the same bits (small_pack.cuh), and nvcc is told not to fuse a multiplication
// and an addition.
#include "kernels/cuda/access.cuh"
#include "kernels/cuda/board_body.h"
#include "kernels/cuda/board_machine.cuh"
#include "kernels/cuda/small_pack.cuh"
#include "kernels/elements.h"

namespace trestle::kernels {
namespace {

using E = Element<DataType::TRESTLE_ELEMENT>;
using Stored = E::Stored;
using Value = E::Value;

constexpr uint32_t kPerPack = kPackBytes / sizeof(Stored);
constexpr uint32_t kLoadsTogether = 8;  // of 16 bytes: 128 bytes per thread are on their way

struct Elements {
  Stored at[kPerPack];
};

// Packs, converted by the functions of the CPU.
struct PlainPack {
  struct Values {
    Value at[kPerPack];
  };
  __device__ static Values widen(uint4 pack) {
    Elements elements;
    memcpy(elements.at, &pack, kPackBytes);
    Values values;
#pragma unroll
    for (uint32_t i = 0; i < kPerPack; ++i) values.at[i] = E::widen(elements.at[i]);
    return values;
  }
  __device__ static bool narrow(const Values& values, uint4& pack) {
    Elements elements;
#pragma unroll
    for (uint32_t i = 0; i < kPerPack; ++i) elements.at[i] = E::narrow(values.at[i]);
    memcpy(&pack, elements.at, kPackBytes);
    return true;
  }
};

// By instructions of the device, where it has them.
using Word = SmallWord<DataType::TRESTLE_ELEMENT>;
using FastPack = std::conditional_t<Word::kIsKnown, SmallPack<Word>, PlainPack>;

template <ReduceOp op, class Values>
__device__ void fold_in(Values& values, const Values& more) {
#pragma unroll
  for (uint32_t i = 0; i < kPerPack; ++i) values.at[i] = fold<op>(values.at[i], more.at[i]);
}

__device__ bool is_sum(const CudaReduce& work, uint32_t source) {
  return (work.sums[source / 32] >> source % 32 & 1) != 0;
}

// What an element of this source adds to an average.
__device__ Value averaged_one(Value value, const CudaReduce& work, uint32_t source) {
  if constexpr (E::kScalesFirst) {
    if (work.average_over > 0 && !is_sum(work, source)) return value * work.share;
  }
  return value;
}

template <class Values>
__device__ Values averaged(Values values, const CudaReduce& work, uint32_t source) {
#pragma unroll
  for (uint32_t i = 0; i < kPerPack; ++i) values.at[i] = averaged_one(values.at[i], work, source);
  return values;
}

// What the sum of an average becomes.
__device__ Value divided_one(Value value, const CudaReduce& work) {
  if constexpr (!E::kScalesFirst) {
    if (work.average_over > 0) return divide(value, work.average_over);
  }
  return value;
}

template <class Values>
__device__ void divide_all(Values& values, const CudaReduce& work) {
#pragma unroll
  for (uint32_t i = 0; i < kPerPack; ++i) values.at[i] = divided_one(values.at[i], work);
}

__device__ const unsigned char* packs_of(const void* buffer, const PackedRange& range) {
  return static_cast<const unsigned char*>(buffer) + range.head * sizeof(Stored);
}
__device__ unsigned char* packs_of(void* buffer, const PackedRange& range) {
  return static_cast<unsigned char*>(buffer) + range.head * sizeof(Stored);
}

template <uint32_t kSources>
struct Loaded {
  uint4 at[kSources];
};

// False: only PlainPack has the right bits.
template <ReduceOp op, class Pack, uint32_t kSources>
__device__ bool fold_loaded(const Loaded<kSources>& loaded, const CudaReduce& work, uint4& result) {
  typename Pack::Values values = averaged(Pack::widen(loaded.at[0]), work, 0);
#pragma unroll
  for (uint32_t s = 1; s < kSources; ++s) fold_in<op>(values, averaged(Pack::widen(loaded.at[s]), work, s));
  divide_all(values, work);
  return Pack::narrow(values, result);
}

template <ReduceOp op, uint32_t kSources>
__device__ __noinline__ uint4 fold_loaded_again(Loaded<kSources> loaded, const CudaReduce& work) {
  uint4 result;
  fold_loaded<op, PlainPack>(loaded, work, result);
  return result;
}

// A number of sources that the compiler knows: all loads of kTogether packs come first.
template <ReduceOp op, uint32_t kSources, uint32_t kTogether>
__device__ void reduce_known(const CudaReduce& work, uint64_t pack, uint32_t stride) {
  Loaded<kSources> loaded[kTogether];
#pragma unroll
  for (uint32_t p = 0; p < kTogether; ++p) {
#pragma unroll
    for (uint32_t s = 0; s < kSources; ++s) {
      loaded[p].at[s] = load_pack(packs_of(work.sources[s], work.range), pack + p * stride);
    }
  }
#pragma unroll
  for (uint32_t p = 0; p < kTogether; ++p) {
    uint4 result;
    if (!fold_loaded<op, FastPack>(loaded[p], work, result)) result = fold_loaded_again<op>(loaded[p], work);
    store_pack(packs_of(work.dst, work.range), pack + p * stride, result);
  }
}

// Any number of sources, four at a time. False: as above.
template <ReduceOp op, class Pack>
__device__ bool fold_any(const CudaReduce& work, uint64_t pack, uint4& result) {
  constexpr uint32_t kGroup = 4;
  const auto load = [&](uint32_t s) { return load_pack(packs_of(work.sources[s], work.range), pack); };
  typename Pack::Values values = averaged(Pack::widen(load(0)), work, 0);
  uint32_t s = 1;
  for (; s + kGroup <= work.source_count; s += kGroup) {
    uint4 loaded[kGroup];
#pragma unroll
    for (uint32_t g = 0; g < kGroup; ++g) loaded[g] = load(s + g);
#pragma unroll
    for (uint32_t g = 0; g < kGroup; ++g) fold_in<op>(values, averaged(Pack::widen(loaded[g]), work, s + g));
  }
  for (; s < work.source_count; ++s) fold_in<op>(values, averaged(Pack::widen(load(s)), work, s));
  divide_all(values, work);
  return Pack::narrow(values, result);
}

template <ReduceOp op>
__device__ __noinline__ uint4 fold_any_again(const CudaReduce& work, uint64_t pack) {
  uint4 result;
  fold_any<op, PlainPack>(work, pack, result);
  return result;
}

template <ReduceOp op>
__device__ void reduce_any(const CudaReduce& work, uint64_t pack) {
  uint4 result;
  if (!fold_any<op, FastPack>(work, pack, result)) result = fold_any_again<op>(work, pack);
  store_pack(packs_of(work.dst, work.range), pack, result);
}

// kTogether elements outside the packs: of each source, or of several, all loads come first. kSources: 0: any number.
template <ReduceOp op, uint32_t kSources, uint32_t kTogether>
__device__ void reduce_elements(const CudaReduce& work, uint64_t single, uint32_t stride, bool aligned) {
  const uint32_t sources = kSources == 0 ? work.source_count : kSources;
  Stored loaded[kTogether];
  const auto load = [&](uint32_t s) {
#pragma unroll
    for (uint32_t t = 0; t < kTogether; ++t)
      loaded[t] =
          load_one<Stored>(work.sources[s], place_of_single<kPerPack>(work.range, single + t * stride), aligned);
  };
  Value values[kTogether];
  load(0);
#pragma unroll
  for (uint32_t t = 0; t < kTogether; ++t) values[t] = averaged_one(E::widen(loaded[t]), work, 0);
#pragma unroll(kSources == 0 ? 1 : kSources)
  for (uint32_t s = 1; s < sources; ++s) {
    load(s);
#pragma unroll
    for (uint32_t t = 0; t < kTogether; ++t)
      values[t] = fold<op>(values[t], averaged_one(E::widen(loaded[t]), work, s));
  }
#pragma unroll
  for (uint32_t t = 0; t < kTogether; ++t) {
    const uint64_t place = place_of_single<kPerPack>(work.range, single + t * stride);
    store_one(work.dst, place, E::narrow(divided_one(values[t], work)), aligned);
  }
}

// These are all elements, if the buffers are not equally far from a boundary.
template <ReduceOp op, uint32_t kSources>
__device__ void reduce_singles(const CudaReduce& work) {
  constexpr uint32_t kTogether = kSources == kLoadsTogether ? 2 : 4;
  const uint64_t singles = work.range.elements - work.range.packs * kPerPack;
  if (work.range.elements_are_aligned == 0) {
    for (uint64_t i = thread_of_grid(); i < singles; i += threads_of_grid())
      reduce_elements<op, 0, 1>(work, i, 0, false);
    return;
  }
  for_packs<kTogether>(
      singles, [&](uint64_t i, uint32_t stride) { reduce_elements<op, kSources, kTogether>(work, i, stride, true); },
      [&](uint64_t i) { reduce_elements<op, kSources, 1>(work, i, 0, true); });
}

template <ReduceOp op, uint32_t kSources>
__device__ void reduce_with(const CudaReduce& work) {
  if constexpr (kSources == 0) {
    for (uint64_t p = thread_of_grid(); p < work.range.packs; p += threads_of_grid()) reduce_any<op>(work, p);
  } else {
    constexpr uint32_t kTogether = kLoadsTogether / kSources;
    for_packs<kTogether>(
        work.range.packs,
        [&](uint64_t pack, uint32_t stride) { reduce_known<op, kSources, kTogether>(work, pack, stride); },
        [&](uint64_t pack) { reduce_known<op, kSources, 1>(work, pack, 0); });
  }
  reduce_singles<op, kSources>(work);
}

template <class Pack>
__device__ bool scale_pack(uint4 pack, Value factor, uint4& result) {
  typename Pack::Values values = Pack::widen(pack);
#pragma unroll
  for (uint32_t i = 0; i < kPerPack; ++i) values.at[i] = fold<ReduceOp::kProd>(values.at[i], factor);
  return Pack::narrow(values, result);
}

__device__ __noinline__ uint4 scale_again(uint4 pack, Value factor) {
  uint4 result;
  scale_pack<PlainPack>(pack, factor, result);
  return result;
}

}  // namespace
}  // namespace trestle::kernels

#define TRESTLE_REDUCE(name, op, sources)                                                                             \
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ trestle::kernels::CudaReduce work) { \
    trestle::kernels::reduce_with<trestle::ReduceOp::op, sources>(work);                                              \
  }
#define TRESTLE_REDUCES(name, op) \
  TRESTLE_REDUCE(name##_2, op, 2) \
  TRESTLE_REDUCE(name##_4, op, 4) \
  TRESTLE_REDUCE(name##_8, op, 8) \
  TRESTLE_REDUCE(name##_any, op, 0)
TRESTLE_REDUCES(sum, kSum)
TRESTLE_REDUCES(prod, kProd)
TRESTLE_REDUCES(max, kMax)
TRESTLE_REDUCES(min, kMin)

extern "C" __global__ void __launch_bounds__(256) scale(const __grid_constant__ trestle::kernels::CudaScale work) {
  using namespace trestle::kernels;
  const Value factor = E::widen(load_one<Stored>(work.factor, 0, true));
  const auto scaled = [factor](uint4 pack) {
    uint4 result;
    return scale_pack<FastPack>(pack, factor, result) ? result : scale_again(pack, factor);
  };
  const unsigned char* const from = packs_of(work.src, work.range);
  unsigned char* const to = packs_of(work.dst, work.range);
  const auto one = [&](uint64_t pack) { store_pack(to, pack, scaled(load_pack(from, pack))); };
  const auto several = [&](uint64_t pack, uint32_t stride) {
    uint4 loaded[kLoadsTogether];
#pragma unroll
    for (uint32_t p = 0; p < kLoadsTogether; ++p) loaded[p] = load_pack(from, pack + p * stride);
#pragma unroll
    for (uint32_t p = 0; p < kLoadsTogether; ++p) store_pack(to, pack + p * stride, scaled(loaded[p]));
  };
  for_packs<kLoadsTogether>(work.range.packs, several, one);
  const bool aligned = work.range.elements_are_aligned != 0;
  for_single_elements<kPerPack>(work.range, [&](uint64_t i) {
    const Value value = E::widen(load_one<Stored>(work.src, i, aligned));
    store_one(work.dst, i, E::narrow(fold<trestle::ReduceOp::kProd>(value, factor)), aligned);
  });
}

// The board of devices: small sums among ranks of one host (board.h).
#define TRESTLE_BOARD(name, op)                                                                                \
  extern "C" __global__ void __launch_bounds__(trestle::kernels::kBoardThreads)                                \
      name(const __grid_constant__ trestle::kernels::CudaBoardCall call) {                                     \
    trestle::kernels::run_board<trestle::kernels::CudaMachine,                                                 \
                                trestle::kernels::Sums<trestle::kernels::E, trestle::ReduceOp::op>>({}, call); \
  }
TRESTLE_BOARD(board_sum, kSum)
TRESTLE_BOARD(board_prod, kProd)
TRESTLE_BOARD(board_max, kMax)
TRESTLE_BOARD(board_min, kMin)
