// Reductions as plain loops, which the compiler vectorises where it can. See reduce.h for the contract.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/elements.h"
#include "kernels/reduce_loops.h"

namespace trestle {
namespace {

using kernels::average_factor;
using kernels::divide;
using kernels::Element;
using kernels::fold;

// Values are folded in a small array that stays in registers or in the first-level cache. So every source is read once.
// dst may be one of the sources: it is written only after the same elements of all sources have been read.
constexpr size_t kBatchElements = 64;

template <class E>
typename E::Stored load(const std::byte* source, size_t index) {
  typename E::Stored stored;
  std::memcpy(&stored, source + index * sizeof(stored), sizeof(stored));
  return stored;
}

// Elements [begin, begin + count) of source number s.
template <class E, ReduceOp op>
void fold_source(typename E::Value* values, const std::byte* source, size_t begin, size_t count, const ReduceSpec& spec,
                 size_t s) {
  const auto fold_each = [&](const auto& value_of) {
    for (size_t i = 0; i < count; ++i) {
      const auto value = value_of(E::widen(load<E>(source, begin + i)));
      values[i] = s == 0 ? value : fold<op>(values[i], value);
    }
  };
  if constexpr (E::kScalesFirst) {
    const float factor = average_factor(spec.average_over, spec.sums != nullptr && spec.sums[s] != 0);
    if (spec.average_over > 0) return fold_each([=](float value) { return value * factor; });
  }
  fold_each([](auto value) { return value; });
}

template <DataType type, ReduceOp op>
void reduce_loop(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, const ReduceSpec& spec) {
  using E = Element<type>;
  using Stored = typename E::Stored;
  const bool copies_only = sources.size() == 1 && spec.average_over == 0;
  if (copies_only) {
    if (dst != sources[0]) std::memcpy(dst, sources[0], elements * sizeof(Stored));
    return;
  }
  std::array<typename E::Value, kBatchElements> values;
  for (size_t begin = 0; begin < elements; begin += kBatchElements) {
    const size_t count = std::min(kBatchElements, elements - begin);
    for (size_t s = 0; s < sources.size(); ++s) fold_source<E, op>(values.data(), sources[s], begin, count, spec, s);
    if (!E::kScalesFirst && spec.average_over > 0) {
      for (size_t i = 0; i < count; ++i) values[i] = divide(values[i], spec.average_over);
    }
    for (size_t i = 0; i < count; ++i) {
      const Stored stored = E::narrow(values[i]);
      std::memcpy(dst + (begin + i) * sizeof(stored), &stored, sizeof(stored));
    }
  }
}

template <DataType type>
ReduceFunction loop_for(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return reduce_loop<type, ReduceOp::kSum>;
    case ReduceOp::kProd:
      return reduce_loop<type, ReduceOp::kProd>;
    case ReduceOp::kMax:
      return reduce_loop<type, ReduceOp::kMax>;
    case ReduceOp::kMin:
      return reduce_loop<type, ReduceOp::kMin>;
  }
  return nullptr;
}

ReduceFunction loop_for(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kInt8:
      return loop_for<DataType::kInt8>(op);
    case DataType::kUint8:
      return loop_for<DataType::kUint8>(op);
    case DataType::kInt32:
      return loop_for<DataType::kInt32>(op);
    case DataType::kUint32:
      return loop_for<DataType::kUint32>(op);
    case DataType::kInt64:
      return loop_for<DataType::kInt64>(op);
    case DataType::kUint64:
      return loop_for<DataType::kUint64>(op);
    case DataType::kFloat16:
      return loop_for<DataType::kFloat16>(op);
    case DataType::kFloat32:
      return loop_for<DataType::kFloat32>(op);
    case DataType::kFloat64:
      return loop_for<DataType::kFloat64>(op);
    case DataType::kBfloat16:
      return loop_for<DataType::kBfloat16>(op);
    case DataType::kFloat8e4m3:
      return loop_for<DataType::kFloat8e4m3>(op);
    case DataType::kFloat8e5m2:
      return loop_for<DataType::kFloat8e5m2>(op);
  }
  return nullptr;
}

}  // namespace

ReduceFunction kernels::portable_loop(DataType type, ReduceOp op) {
  return loop_for(type, op);
}

}  // namespace trestle
