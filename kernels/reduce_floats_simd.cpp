// Reductions of floats for every instruction set. Those of 8 and 16 bits are folded in float32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_floats_simd.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/reduce_loops.h"
#include "kernels/vector_fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trestle::HWY_NAMESPACE {

// kSumUnroll: vectors that a sum has in hand at the same time.
template <class E, int kSumUnroll>
ReduceFunction float_loop_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return reduce_floats<E, Sum, kSumUnroll>;
    case ReduceOp::kProd:
      return reduce_floats<E, Prod, 2>;
    case ReduceOp::kMax:
      return reduce_floats<E, Max, 2>;
    case ReduceOp::kMin:
      return reduce_floats<E, Min, 2>;
  }
  return nullptr;
}

ReduceFunction float_loop(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kFloat64:
      return float_loop_of<Plain<double>, 4>(op);
    case DataType::kFloat32:
      return float_loop_of<Plain<float>, 4>(op);
    case DataType::kFloat16:
      return float_loop_of<Half, 2>(op);
    case DataType::kBfloat16:
      return float_loop_of<Bfloat16, 2>(op);
    case DataType::kFloat8e4m3:
      return float_loop_of<E4m3, 2>(op);
    case DataType::kFloat8e5m2:
      return float_loop_of<E5m2, 2>(op);
    default:
      return nullptr;
  }
}

}  // namespace trestle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trestle {
HWY_EXPORT(float_loop);
ReduceFunction kernels::simd_float_loop(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(float_loop)(type, op);
}
}  // namespace trestle
#endif
