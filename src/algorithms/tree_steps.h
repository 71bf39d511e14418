// The steps that tree and dbtree share: one block that goes up or down a tree, seen from one rank. Pure functions, any
// thread; src/algorithms only.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/builder.h"

namespace trestle {

// The neighbours of a rank in a tree, as indices in the group.
struct TreeFamily {
  int32_t parent = kLocal;  // kLocal at the root
  std::vector<int32_t> children;
};

// Adds the children's sums of block `block` to the input and sends the result, kept in `sum`, to the parent. A leaf
// sends its input.
void tree_up(PlanBuilder& builder, const TreeFamily& family, uint32_t block, BlockRange sum);
// Receives block `block` from the parent into the output and passes it on; the root starts from `at_root`.
void tree_down(PlanBuilder& builder, const TreeFamily& family, uint32_t block, BlockRange at_root);

}  // namespace trestle
