// Every set of reduction loops that this build has and this CPU can run, so that one test covers them all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/reduce.h"

namespace trestle {

struct LoopSet {
  std::string name;
  std::function<ReduceFunction(DataType, ReduceOp)> find;  // null where the set leaves a case to the portable loops
};

std::vector<LoopSet> kernel_loop_sets();

}  // namespace trestle
