#include <hwy/targets.h>

#include "kernels/reduce_loops.h"
#include "unit/kernels/kernel_loop_sets.h"

namespace trestle {
namespace {

// While it lives, dispatch chooses this instruction set, even if the CPU has a better one.
class OnlyTarget {
 public:
  explicit OnlyTarget(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
  }
  ~OnlyTarget() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  OnlyTarget(const OnlyTarget&) = delete;
  OnlyTarget& operator=(const OnlyTarget&) = delete;
};

ReduceFunction find_for(int64_t target, DataType type, ReduceOp op) {
  const OnlyTarget only(target);
  return is_float(type) ? kernels::simd_float_loop(type, op) : kernels::simd_integer_loop(type, op);
}

// Calls f(name, target) for the instruction sets that could be chosen. The scalar ones never are: the portable loops
// are used instead.
template <class F>
void for_targets(F f) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if ((target & (HWY_SCALAR | HWY_EMU128)) == 0) f(hwy::TargetName(target), target);
  }
}

}  // namespace

std::vector<LoopSet> kernel_loop_sets() {
  std::vector<LoopSet> sets = {{"chosen", find_reduce}, {"portable", kernels::portable_loop}};
  for_targets([&](const char* name, int64_t target) {
    sets.push_back({name, [target](DataType type, ReduceOp op) { return find_for(target, type, op); }});
  });
  return sets;
}

std::vector<SparseLoopSet> sparse_loop_sets() {
  std::vector<SparseLoopSet> sets = {{"chosen", kernels::sparse_loops()},
                                     {"portable", kernels::portable_sparse_loops()}};
  for_targets([&](const char* name, int64_t target) {
    const OnlyTarget only(target);
    sets.push_back({name, kernels::simd_sparse_loops()});
  });
  return sets;
}

}  // namespace trestle
