// otree: one binary tree in which a rank stands between its children, in segments. Every sum covers consecutive ranks
// and is combined in rank order, so that operators need not be commutative.
//
//   7 ranks, all-reduce:        3             a subtree is a range of ranks, rooted at the middle one
//                             /   \                                                                     .
//                            1     5          rank 1 adds   sum of 0 + own + sum of 2
//                           / \   / \         rank 3 adds   sum of 0..2 + own + sum of 4..6
//                          0   2 4   6
//
//   reduce: the ranks below the root are one subtree, the ranks above it the other. all-reduce: a reduce to the middle
//   rank, then a broadcast down the same tree.
//
// Cost: floor(log2 n) steps with the root in the middle, at most one more with a root at an end. An inner rank receives
// the data twice in a reduce; in an all-reduce it sends and receives them three times. Scratch: 1 block at inner ranks
// for reduce, none for all-reduce. Only the root makes the final sum, so all ranks have the same bits.
//
// In-order trees: Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel
// Computing 35 (2009), section 3.
#include <algorithm>
#include <bit>

#include "algorithms/rows.h"
#include "algorithms/tree_steps.h"
#include "base/check.h"

namespace trestle {

namespace ordered_tree {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && (kind == PhaseKind::kReduce || kind == PhaseKind::kAllReduce);
}

int32_t middle_of(int32_t first, int32_t last) {
  return first + (last - first) / 2;
}

// The family of `me` in the tree of `root`. Walks down from the subtree of all ranks [first, last).
TreeFamily family_of(int32_t group_size, int32_t root, int32_t me) {
  TreeFamily family;
  int32_t first = 0;
  int32_t last = group_size;
  while (me != root) {
    family.parent = root;
    (me < root ? last : first) = me < root ? root : root + 1;
    root = middle_of(first, last);
  }
  if (first < root) family.children.push_back(middle_of(first, root));
  if (root + 1 < last) family.children.push_back(middle_of(root + 1, last));
  return family;
}

// Sum of the ranks below, own part, sum of the ranks above.
void ordered_up(PlanBuilder& builder, const TreeFamily& family, int32_t me, BlockRange sum) {
  if (family.children.empty()) {
    builder.send(family.parent, input(0), 0);
    return;
  }
  std::vector<Operand> sources;
  for (const int32_t child : family.children) {
    if (child < me) sources.push_back(from(child));
  }
  sources.emplace_back(input(0));
  for (const int32_t child : family.children) {
    if (child > me) sources.push_back(from(child));
  }
  builder.reduce(sum, sources, 0);
  if (family.parent != kLocal) builder.send(family.parent, sum, 0);
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "otree does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, 1);
  const bool all = request.kind == PhaseKind::kAllReduce;
  const int32_t root = all ? middle_of(0, request.group_size) : request.root;
  const TreeFamily family = family_of(request.group_size, root, request.me);
  ordered_up(builder, family, request.me, all || request.me == root ? output(0) : scratch(0));
  if (all) tree_down(builder, family, 0, output(0));
  return std::move(builder).finish();
}

bool in_rank_order(PhaseKind, int32_t) {
  return true;
}

// Assumes that the root is in the middle; then there are floor(log2 n) steps.
AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  const uint32_t depth = static_cast<uint32_t>(std::bit_width(n)) - 1;
  const uint32_t children = std::min(2u, n - 1);
  // The root or, if ranks below it have children of their own, the busiest of these.
  uint32_t links = children;
  for (int32_t me = 0; me < group_size && links < 3; ++me) {
    const TreeFamily family = family_of(group_size, middle_of(0, group_size), me);
    const bool has_parent = family.parent != kLocal;
    links = std::max(links, static_cast<uint32_t>(family.children.size()) + (has_parent ? 1 : 0));
  }
  if (kind == PhaseKind::kReduce) {
    return {
        .steps = depth, .sent_num = children, .reduced_num = children, .messages = links, .converges = children > 1};
  }
  return {.steps = 2 * depth, .sent_num = links, .reduced_num = children, .messages = 2 * links, .converges = n > 2};
}

}  // namespace
}  // namespace ordered_tree

const Algorithm kOrderedTree{"otree",
                             "binary tree in rank order, pipelined; for operators that are not commutative",
                             ordered_tree::serves,
                             ordered_tree::build,
                             ordered_tree::cost,
                             ordered_tree::in_rank_order};

}  // namespace trestle
