// float16, bfloat16 and float8 reductions, folded in float32, for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_small_floats_simd.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/reduce_loops.h"
#include "kernels/vector_fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trestle::HWY_NAMESPACE {

template <class E>
ReduceFunction small_float_loop_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return reduce_floats<E, Sum, 2>;
    case ReduceOp::kProd:
      return reduce_floats<E, Prod, 2>;
    case ReduceOp::kMax:
      return reduce_floats<E, Max, 2>;
    case ReduceOp::kMin:
      return reduce_floats<E, Min, 2>;
  }
  return nullptr;
}

ReduceFunction small_float_loop(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kFloat16:
      return small_float_loop_of<Half>(op);
    case DataType::kBfloat16:
      return small_float_loop_of<Bfloat16>(op);
    case DataType::kFloat8e4m3:
      return small_float_loop_of<E4m3>(op);
    case DataType::kFloat8e5m2:
      return small_float_loop_of<E5m2>(op);
    default:
      return nullptr;
  }
}

}  // namespace trestle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trestle {
HWY_EXPORT(small_float_loop);
ReduceFunction kernels::simd_small_float_loop(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(small_float_loop)(type, op);
}
}  // namespace trestle
#endif
