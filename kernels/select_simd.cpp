// Chooses the loops in builds with Highway.
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "base/check.h"
#include "base/fork.h"
#include "kernels/reduce_loops.h"
#include "kernels/sparse_loops.h"

namespace trestle {
namespace {

// The best instruction set of this CPU. Highway's scalar and emulated sets are no faster than the compiler's plain
// loops.
int64_t best_target() {
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return supported & -supported;  // the lowest bit is the best set
}

bool has_simd() {
  return (best_target() & (HWY_SCALAR | HWY_EMU128)) == 0;
}

ReduceFunction simd_loop(DataType type, ReduceOp op) {
  return is_float(type) ? kernels::simd_float_loop(type, op) : kernels::simd_integer_loop(type, op);
}

}  // namespace

ReduceFunction find_reduce(DataType type, ReduceOp op) {
  CHECK(is_valid(type) && is_valid(op), "a reduction was asked for a type or operator that does not exist");
  static constinit PerProcess<const bool> simd;
  const ReduceFunction function = simd.get(has_simd) ? simd_loop(type, op) : nullptr;
  return function != nullptr ? function : kernels::portable_loop(type, op);
}

const char* reduce_instruction_set() {
  return has_simd() ? hwy::TargetName(best_target()) : "portable";
}

const kernels::SparseLoops& kernels::sparse_loops() {
  static constinit PerProcess<const SparseLoops> loops;
  return loops.get([] { return has_simd() ? simd_sparse_loops() : portable_sparse_loops(); });
}

}  // namespace trestle
