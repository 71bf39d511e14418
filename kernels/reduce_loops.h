// The families of reduction loops that find_reduce chooses from. Internal to kernels/, pure, any thread.
//
// Each answers with the loop for a type and operator, or null where it has none and the portable one is to be used.
#pragma once

#include "kernels/reduce.h"

namespace trestle::kernels {

ReduceFunction portable_loop(DataType type, ReduceOp op);

// Built with Highway only; for the best instruction set of this CPU.
ReduceFunction simd_integer_loop(DataType type, ReduceOp op);
ReduceFunction simd_float_loop(DataType type, ReduceOp op);        // float32, float64
ReduceFunction simd_small_float_loop(DataType type, ReduceOp op);  // float16, bfloat16, float8

}  // namespace trestle::kernels
