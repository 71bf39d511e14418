// CustomOp: a reduction operator of the caller's making.
//
// Immutable. Shared by the communicator that it belongs to, the calls that use it and what was prepared for them, so it
// outlives its destruction by the caller as long as anything runs with it. Two are the same only if they are one
// object: what was prepared for a destroyed one is never found again. Used under the progress lock.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/types.h"
#include "kernels/reduce.h"

namespace trestle {

struct CustomOp {
  ReduceOp kind = kPreMulSum;  // or one of the user-defined ones

  // kPreMulSum: one element of `type`, which is also the type of the calls.
  DataType type = DataType::kFloat32;
  std::array<std::byte, 8> immediate{};
  const void* deferred = nullptr;  // not nullptr: the caller's memory, read when an operation starts
  const void* scalar() const { return deferred != nullptr ? deferred : immediate.data(); }

  // User-defined: folds two or more sources, in their order. dst may equal one of them. kReductionFailed: it gave up.
  using Fold =
      std::function<Status(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, DataType type)>;
  Fold fold;
};
using SharedOp = std::shared_ptr<const CustomOp>;

// What the library's own loops do for an operator: a pre-multiplied sum adds up. nullptr for user-defined ones.
inline ReduceFunction find_own_reduce(DataType type, ReduceOp op) {
  if (is_user_defined(op)) return nullptr;
  return find_reduce(type, op == kPreMulSum ? ReduceOp::kSum : op);
}

}  // namespace trestle
