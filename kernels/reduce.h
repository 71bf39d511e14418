// Reductions of elements on the CPU: k sources into one destination, every source read once.
//
// Pure functions, no state, any thread; nothing is allocated. The caller owns all memory and has made sure that it may
// be read and written. The order of the sources is the order of summation: a left fold (((s0 op s1) op s2) ...).
//
//  * float32, float64: each step rounds once, so one call over k sources gives the same bits as k-1 calls over pairs
//  (accumulator first).
//  * float16, bfloat16, float8: widened to float32 (exactly), folded in float32, rounded to nearest even once at the
//  end of the call.
//    Beyond the range the result is infinite, for float8 e4m3, which has no infinity, NaN.
//  * integers wrap around.
//  * max and min: a NaN among the sources makes the result a NaN: for float32 and float64 the last one in order, though
//  a signalling one
//    may have become quiet (compilers are free to do that); of two equal values (-0 and +0) the earlier source's is
//    kept.
//  * kAvg folds like kSum; the division is average_over, so that only the last Reduce of a chain divides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace trestle {

struct ReduceSpec {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // > 0: the folded value is divided by this before it is rounded and stored. Floats divide in the type they are folded
  // in (float32 or float64, one rounding); integers divide the wrapped value and truncate toward zero.
  uint32_t average_over = 0;
  // The destination is large and not read again soon: store past the caches. Changes no bits.
  bool streaming = false;
};

// dst: `elements` elements, any alignment; exactly equal to any of the sources, or disjoint from each; never partly
// overlapping. sources: at least 1, each `elements` elements, any alignment; one source: a copy (divided if asked).
using ReduceFunction = void (*)(std::byte* dst, std::span<const std::byte* const> sources, size_t elements,
                                const ReduceSpec& spec);

// The loop for this type and operator on this CPU: look it up once, keep it, call it often. Only average_over and
// streaming of the spec given at the call are read. Never null for valid numbers (CHECKed).
ReduceFunction find_reduce(DataType type, ReduceOp op);

// find_reduce and the call in one, for places that are not hot.
void reduce(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, const ReduceSpec& spec);

// Name of the instruction set that the loops use on this CPU ("AVX3", "AVX2", ..., "portable"). Static string.
const char* reduce_instruction_set();

}  // namespace trestle
