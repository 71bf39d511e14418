// Chooses the loops in builds without Highway.
#include "base/check.h"
#include "kernels/reduce_loops.h"
#include "kernels/sparse_loops.h"

namespace trestle {

ReduceFunction find_reduce(DataType type, ReduceOp op) {
  const ReduceFunction function = kernels::portable_loop(type, op);
  CHECK(function != nullptr, "a reduction was asked for a type or operator that does not exist");
  return function;
}

const char* reduce_instruction_set() {
  return "portable";
}

const kernels::SparseLoops& kernels::sparse_loops() {
  return portable_sparse_loops();
}

}  // namespace trestle
