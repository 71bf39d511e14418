#include <hwy/targets.h>

#include "kernels/reduce_loops.h"
#include "unit/kernels/kernel_loop_sets.h"

namespace trestle {
namespace {

// The loops of one instruction set, even if the CPU has a better one.
ReduceFunction find_for(int64_t target, DataType type, ReduceOp op) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(target);
  ReduceFunction function = nullptr;
  if (type == DataType::kFloat32 || type == DataType::kFloat64) {
    function = kernels::simd_float_loop(type, op);
  } else {
    function = is_float(type) ? kernels::simd_small_float_loop(type, op) : kernels::simd_integer_loop(type, op);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return function;
}

}  // namespace

std::vector<LoopSet> kernel_loop_sets() {
  std::vector<LoopSet> sets = {{"chosen", find_reduce}, {"portable", kernels::portable_loop}};
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if ((target & (HWY_SCALAR | HWY_EMU128)) != 0) continue;  // never chosen; the portable loops are used instead
    sets.push_back(
        {hwy::TargetName(target), [target](DataType type, ReduceOp op) { return find_for(target, type, op); }});
  }
  return sets;
}

}  // namespace trestle
