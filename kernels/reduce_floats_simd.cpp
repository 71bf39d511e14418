// float32 and float64 reductions for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_floats_simd.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "kernels/reduce_loops.h"
#include "kernels/vector_fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trestle::HWY_NAMESPACE {

template <class E>
ReduceFunction float_loop_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return reduce_floats<E, Sum, 4>;
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
  return type == DataType::kFloat64 ? float_loop_of<Plain<double>>(op) : float_loop_of<Plain<float>>(op);
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
