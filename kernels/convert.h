// Conversions between element types, and scaling. Pure functions, any thread, nothing is allocated.
//
// Widening to float32 is exact. Narrowing rounds to nearest, ties to even, does not saturate, and keeps a NaN with its
// sign. Values beyond the largest finite value's rounding range become:
//  * float16, bfloat16, float8 e5m2 (IEEE 754 style: S.5.10, S.8.7, S.5.2): infinity;
//  * float8 e4m3 (OCP 8-bit Floating Point Specification, "E4M3": S.4.3, no infinity, one NaN pattern 0x7f/0xff,
//    largest 448): NaN.
// NVIDIA's conversions with __NV_NOSAT do the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace trestle {

// src: `elements` of `type` (kFloat16, kBfloat16, kFloat8e4m3, kFloat8e5m2 or kFloat32; CHECKed), any alignment;
// disjoint from dst.
void widen_to_float32(float* dst, const std::byte* src, size_t elements, DataType type);

// dst: `elements` of `type` (as above), any alignment; disjoint from src, or for kFloat32 equal to it.
void narrow_from_float32(std::byte* dst, const float* src, size_t elements, DataType type);

// dst[i] = src[i] * factor, for the floating point types (CHECKed). The factor is rounded to that type. The product is
// computed in float32 (float64 for kFloat64) and rounded once. dst is equal to src or disjoint from it.
void scale(std::byte* dst, const std::byte* src, size_t elements, DataType type, double factor);

}  // namespace trestle
