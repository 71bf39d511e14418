#include "plan/cells.h"

#include "base/check.h"

namespace trestle {

Cells::Cells(const Plan& plan)
    : kind_(with_known_blocks(plan.kind)),
      me_(static_cast<uint32_t>(plan.me) ^ plan.turned),
      inputs_(input_blocks(plan)),
      outputs_(output_blocks(plan)),
      // A rank without an input or an output has nothing to alias (reduce, broadcast away from the root; send; recv).
      aliased_(plan.in_place && inputs_ > 0 && outputs_ > 0) {}

uint32_t Cells::of(Space space, uint32_t block) const {
  switch (space) {
    case Space::kInput:
      CHECK(block < inputs_, "an input block lies outside the input");
      return block;
    case Space::kScratch:
      return inputs_ + outputs_ + block;
    case Space::kOutput:
      break;
  }
  CHECK(block < outputs_, "an output block lies outside the output");
  const uint32_t own = inputs_ + block;
  if (!aliased_) return own;
  if (kind_ == PhaseKind::kReduceScatter || kind_ == PhaseKind::kScatter) return me_;
  if (kind_ == PhaseKind::kAllGather || kind_ == PhaseKind::kGather) return block == me_ ? 0 : own;
  return block;
}

}  // namespace trestle
