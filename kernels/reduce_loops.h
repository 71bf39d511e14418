// The families of reduction loops that find_reduce chooses from. Internal to kernels/, pure, any thread.
//
// Each returns the loop for a type and operator, or null if it has none. Then the portable loop is used.
#pragma once

#include "kernels/reduce.h"

namespace trestle::kernels {

ReduceFunction portable_loop(DataType type, ReduceOp op);

// Only in builds with Highway. For the best instruction set of this CPU.
ReduceFunction simd_integer_loop(DataType type, ReduceOp op);
ReduceFunction simd_float_loop(DataType type, ReduceOp op);

}  // namespace trestle::kernels
