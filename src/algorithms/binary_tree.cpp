// tree: one binary tree; sums go up, results go down, in segments, so that all levels work at once.
//
//   4 ranks, root 0 (ranks counted from the root):      0
//                                                     /   \        rank i has the children 2i+1 and 2i+2
//                                                    1     2
//                                                   /
//                                                  3
//   reduce: a rank adds its children's sums to its input and sends the result to its parent. broadcast: a rank passes
//   on what its parent sent. all-reduce: a reduce to rank 0, then a broadcast of the same block; its first segments
//   start down the tree while the last ones are still on their way up.
//
// Cost: floor(log2 n) steps. An inner rank receives (reduce) or sends (broadcast) the data twice; in all-reduce it does
// each three times. Scratch: 1 block at inner ranks for reduce, else none. Order of summation: own, first child, second
// child. Only the root makes the final sum, so all ranks have the same bits.
//
// Knuth: The Art of Computer Programming 3, 5.2.3 (the numbering); pipelined trees: Sanders, Speck, Träff: Two-tree
// algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35 (2009).
#include <algorithm>
#include <bit>

#include "algorithms/rows.h"
#include "algorithms/tree_steps.h"
#include "base/check.h"

namespace trestle {

namespace binary_tree {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 &&
         (kind == PhaseKind::kReduce || kind == PhaseKind::kBroadcast || kind == PhaseKind::kAllReduce);
}

TreeFamily family_of(const PlanRequest& request) {
  const int32_t n = request.group_size;
  const int32_t place = (request.me - request.root + n) % n;
  TreeFamily family;
  if (place > 0) family.parent = ((place - 1) / 2 + request.root) % n;
  for (int32_t child = 2 * place + 1; child <= 2 * place + 2 && child < n; ++child) {
    family.children.push_back((child + request.root) % n);
  }
  return family;
}

Plan build(const PlanRequest& asked) {
  CHECK(serves(asked.kind, asked.group_size), "tree does not serve this phase");
  if (asked.group_size == 1) return build_alone(asked);
  PlanBuilder builder(asked, 1);
  PlanRequest request = asked;
  if (request.kind == PhaseKind::kAllReduce) request.root = 0;
  const TreeFamily family = family_of(request);
  if (request.kind == PhaseKind::kReduce)
    tree_up(builder, family, 0, request.me == request.root ? output(0) : scratch(0));
  if (request.kind == PhaseKind::kBroadcast) {
    tree_down(builder, family, 0, input(0));
    if (request.me == request.root) builder.copy(output(0), input(0), 0);
  }
  if (request.kind == PhaseKind::kAllReduce) {
    tree_up(builder, family, 0, output(0));
    tree_down(builder, family, 0, output(0));
  }
  return std::move(builder).finish();
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  const uint32_t depth = static_cast<uint32_t>(std::bit_width(n)) - 1;
  const uint32_t children = std::min(2u, n - 1);
  // The busiest rank is the root or, with a parent in addition to its children (3 and 4 ranks), rank 1.
  const uint32_t busiest = std::max(children, 1 + std::min(2u, n - std::min(n, 3u)));
  if (kind == PhaseKind::kReduce)
    return {
        .steps = depth, .sent_num = children, .reduced_num = children, .messages = busiest, .converges = children > 1};
  if (kind == PhaseKind::kBroadcast) return {.steps = depth, .sent_num = children, .messages = busiest};
  return {
      .steps = 2 * depth, .sent_num = busiest, .reduced_num = children, .messages = 2 * busiest, .converges = n > 2};
}

}  // namespace
}  // namespace binary_tree

const Algorithm kBinaryTree{"tree", "one binary tree, pipelined", binary_tree::serves, binary_tree::build,
                            binary_tree::cost};

}  // namespace trestle
