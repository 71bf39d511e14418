// Integer reductions for every instruction set. Sums and products of signed and unsigned numbers have the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_integers_simd.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/elements.h"
#include "kernels/reduce_loops.h"
#include "kernels/vector_fold-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trestle::HWY_NAMESPACE {

// Few CPUs divide integer vectors. So averages are divided element by element, in blocks that stay in the first-level
// cache.
template <class T>
void divide_block(std::byte* block, size_t elements, uint32_t divisor) {
  for (size_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, block + i * sizeof(T), sizeof(T));
    value = kernels::divide(value, divisor);
    std::memcpy(block + i * sizeof(T), &value, sizeof(T));
  }
}

// T: the type that divides. Folded: the type that is folded (unsigned for sums and products).
template <class T, class Folded, class Op>
void reduce_integers(std::byte* dst, Sources sources, size_t elements, const ReduceSpec& spec) {
  if (spec.average_over == 0) {
    if (sources.size() == 1) return copy(dst, sources[0], elements * sizeof(T), spec.streaming);
    return fold_all<Plain<Folded>, Op, 2>(dst, sources, 0, elements, {0, spec.streaming});
  }
  constexpr size_t kBlockElements = 8192 / sizeof(T);
  for (size_t begin = 0; begin < elements; begin += kBlockElements) {
    const size_t end = std::min(begin + kBlockElements, elements);
    fold_all<Plain<Folded>, Op, 2>(dst, sources, begin, end, {});
    divide_block<T>(dst + begin * sizeof(T), end - begin, spec.average_over);
  }
}

template <class T>
ReduceFunction integer_loop_of(ReduceOp op) {
  using Unsigned = std::make_unsigned_t<T>;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return reduce_integers<T, Unsigned, Sum>;
    case ReduceOp::kProd:
      if constexpr (sizeof(T) == 4) return reduce_integers<T, Unsigned, Prod>;
      // No instruction set multiplies vectors of 8-bit numbers, and few multiply 64-bit ones. The portable loop is as
      // fast.
      return nullptr;
    case ReduceOp::kMax:
      return reduce_integers<T, T, Max>;
    case ReduceOp::kMin:
      return reduce_integers<T, T, Min>;
  }
  return nullptr;
}

ReduceFunction integer_loop(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kInt8:
      return integer_loop_of<int8_t>(op);
    case DataType::kUint8:
      return integer_loop_of<uint8_t>(op);
    case DataType::kInt32:
      return integer_loop_of<int32_t>(op);
    case DataType::kUint32:
      return integer_loop_of<uint32_t>(op);
    case DataType::kInt64:
      return integer_loop_of<int64_t>(op);
    case DataType::kUint64:
      return integer_loop_of<uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace trestle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trestle {
HWY_EXPORT(integer_loop);
ReduceFunction kernels::simd_integer_loop(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(integer_loop)(type, op);
}
}  // namespace trestle
#endif
