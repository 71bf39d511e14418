// Every set of loops that this build has and this CPU can run, so that tests cover all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/reduce.h"
#include "kernels/sparse_loops.h"

namespace trestle {

struct LoopSet {
  std::string name;
  // Returns null if the set leaves a case to the portable loops.
  std::function<ReduceFunction(DataType, ReduceOp)> find;
};

std::vector<LoopSet> kernel_loop_sets();

struct SparseLoopSet {
  std::string name;
  kernels::SparseLoops loops;
};

std::vector<SparseLoopSet> sparse_loop_sets();

}  // namespace trestle
