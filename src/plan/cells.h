// Cells: the blocks of one rank's plan as memory. Two blocks that are the same memory (in place) have the same cell.
//
// Value type, any thread. Only this class knows the in-place column of the table in plan.h. The builder derives
// dependencies from it, and the checker executes on it.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace trestle {

class Cells {
 public:
  explicit Cells(const Plan& plan);

  // The cell of a block; input and output cells come first, scratch cells after them.
  uint32_t of(Space space, uint32_t block) const;
  // Cells of input and output together; a scratch block's cell is this plus its number.
  uint32_t buffer_cells() const { return inputs_ + outputs_; }

 private:
  PhaseKind kind_;
  uint32_t me_;
  uint32_t inputs_;
  uint32_t outputs_;
  bool aliased_;
};

}  // namespace trestle
