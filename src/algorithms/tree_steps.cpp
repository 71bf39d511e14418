#include "algorithms/tree_steps.h"

namespace trestle {

void tree_up(PlanBuilder& builder, const TreeFamily& family, uint32_t block, BlockRange sum) {
  if (family.children.empty()) {
    builder.send(family.parent, input(block), block);
    return;
  }
  std::vector<Operand> sources{input(block)};
  for (int32_t child : family.children) sources.push_back(from(child));
  builder.reduce(sum, sources, block);
  if (family.parent != kLocal) builder.send(family.parent, sum, block);
}

void tree_down(PlanBuilder& builder, const TreeFamily& family, uint32_t block, BlockRange at_root) {
  const bool root = family.parent == kLocal;
  if (!root) builder.recv(family.parent, output(block), block);
  for (int32_t child : family.children) builder.send(child, root ? at_root : output(block), block);
}

}  // namespace trestle
