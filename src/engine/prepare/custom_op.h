// CustomOp: a user-defined reduction operator, or a pre-multiplied sum.
//
// Immutable. Shared by the communicator that it belongs to, the calls that use it and the Prepareds made for them. So
// it outlives its destruction by the caller as long as anything runs with it. Two operators are equal only if they are
// the same object: a Prepared of a destroyed one is never found again. The scalar is read under the progress
// lock; `fold` runs where the lock is lent, or on a work queue's thread.
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
  ReduceOp kind = kPreMulSum;  // or one of the user-defined kinds

  // kPreMulSum: one element of `type`, which is also the type of the calls.
  DataType type = DataType::kFloat32;
  std::array<std::byte, 8> immediate{};
  const void* deferred = nullptr;  // not nullptr: user memory, read when an operation starts
  const void* scalar() const { return deferred != nullptr ? deferred : immediate.data(); }

  // User-defined: folds two or more sources, in their order. dst may equal one of them. kReductionFailed: the user's
  // function failed.
  using Fold =
      std::function<Status(std::byte* dst, std::span<const std::byte* const> sources, size_t elements, DataType type)>;
  Fold fold;
};
using SharedOp = std::shared_ptr<const CustomOp>;

// The library's own loop for an operator: a pre-multiplied sum uses the sum. nullptr for user-defined operators.
inline ReduceFunction find_own_reduce(DataType type, ReduceOp op) {
  if (is_user_defined(op)) return nullptr;
  return find_reduce(type, op == kPreMulSum ? ReduceOp::kSum : op);
}

}  // namespace trestle
