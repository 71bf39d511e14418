#include "kernels/reduce_loops.h"
#include "unit/kernels/kernel_loop_sets.h"

namespace trestle {

std::vector<LoopSet> kernel_loop_sets() {
  return {{"chosen", find_reduce}, {"portable", kernels::portable_loop}};
}

std::vector<SparseLoopSet> sparse_loop_sets() {
  return {{"chosen", kernels::sparse_loops()}, {"portable", kernels::portable_sparse_loops()}};
}

}  // namespace trestle
