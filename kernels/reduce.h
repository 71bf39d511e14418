// Reductions of elements on the CPU: k sources into one destination. Every source is read once.
//
// Pure functions, no state, any thread; nothing is allocated. The caller owns all memory and makes sure that it may be
// read and written. The order of the sources is the order of summation: a left fold (((s0 op s1) op s2) ...).
//
//  * float32, float64: each step rounds once. So one call over k sources gives the same bits as k-1 calls over pairs
//    (accumulator first).
//  * float16, bfloat16, float8: widened to float32 (exactly), folded in float32, rounded to nearest even once at the
//    end of the call. Beyond the range the result is infinite; for float8 e4m3, which has no infinity, it is NaN.
//  * Integers wrap around.
//  * max and min: a NaN among the sources makes the result a NaN. For float32 and float64 it is the last one in order,
//    but a signalling one may have become quiet, because compilers may do that. Of two equal values (-0 and +0) the
//    result is the earlier source's.
//  * kAvg folds like kSum. An average is average_over. float32, float64 and integers are divided after the last
//  addition,
//    so only the last Reduce of a chain divides. float16, bfloat16 and float8 are multiplied by 1/n before they are
//    added, because their sum may overflow where the average does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace trestle {

// Those of 8 and 16 bits.
constexpr bool is_small_float(DataType type) {
  return is_float(type) && size_of(type) < sizeof(float);
}

struct ReduceSpec {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // > 0: an average over this number n of ranks. float16, bfloat16, float8: each source is multiplied by 1/n (both in
  // float32, one rounding each) before it is added, unless `sums` says otherwise. Other types: the folded value is
  // divided by n before it is stored; float32 and float64 with one rounding, integers truncate toward zero.
  uint32_t average_over = 0;
  // The destination is large and not read again soon: stores bypass the caches. Does not change any bits.
  bool streaming = false;
  // For an average of 8- or 16-bit floats, by source: 1 if it is a sum of products already, which is added as it is.
  // nullptr: none is.
  const uint8_t* sums = nullptr;
};

// dst: `elements` elements, any alignment; equal to one of the sources or disjoint from all, never partly overlapping.
// sources: at least 1, each with `elements` elements, any alignment. One source: a copy, averaged if requested.
using ReduceFunction = void (*)(std::byte* dst, std::span<const std::byte* const> sources, size_t elements,
                                const ReduceSpec& spec);

// The loop for this type and operator on this CPU. Look it up once and keep it. The loop reads only average_over,
// streaming and sums of its spec. Never null for valid numbers (CHECKed).
ReduceFunction find_reduce(DataType type, ReduceOp op);

// Looks up the loop and calls it, for code that is not performance-critical.
void reduce(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, const ReduceSpec& spec);

// Name of the instruction set that the loops use on this CPU ("AVX3", "AVX2", ..., "portable"). A static string.
const char* reduce_instruction_set();

}  // namespace trestle
