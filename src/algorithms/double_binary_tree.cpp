// dbtree: two binary trees, each for half of the data. A rank that is an inner node of one tree is a leaf of the other.
// So every rank sends and receives about equally much, and both directions of its link are busy.
//
//   The root stands above both trees. The other m = n-1 ranks, counted 1..m from the root on, form tree 0 in order. An
//   odd place is a leaf. The children of an even place are half of its lowest bit away on both sides (on the right as
//   far away as there are places). Tree 1 is tree 0 mirrored (m even) or shifted by one place (m odd), so that odd and
//   even places swap.
//
//   5 ranks, root 0:      tree 0 (block 0)   0           tree 1 (block 1)   0
//                                            |                              |
//                                            4                              1
//                                           /                                \                                    .
//                                          2                                  3
//                                         / \                                / \                                  .
//                                        1   3                              4   2
//
// Reduce, broadcast, all-reduce (reduce to rank 0, then broadcast) as in tree, in segments.
// Cost: about log2 n + 1 steps. Every rank sends and receives the data once (reduce, broadcast) or twice (all-reduce).
// Scratch: 1 block at inner ranks for reduce, else none. Only the root makes final sums, so all ranks have the same
// bits.
//
// Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35
// (2009).
#include <algorithm>
#include <bit>

#include "algorithms/rows.h"
#include "algorithms/tree_steps.h"
#include "base/check.h"

namespace trestle {

namespace double_binary_tree {
namespace {

constexpr uint32_t kTrees = 2;

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 &&
         (kind == PhaseKind::kReduce || kind == PhaseKind::kBroadcast || kind == PhaseKind::kAllReduce);
}

int32_t lowest_bit(int32_t place) {
  return place & -place;
}

// The in-order tree over places 1..m. Place 0 is the root above it.
int32_t top_place(int32_t m) {
  return static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(m)));
}

int32_t parent_place(int32_t place, int32_t m) {
  if (place == top_place(m)) return 0;
  const int32_t bit = lowest_bit(place);
  const int32_t up = (place - bit) | (2 * bit);
  return up <= m ? up : place - bit;
}

struct Children {
  int32_t place[2] = {0, 0};
  uint32_t count = 0;
};

Children children_places(int32_t place, int32_t m) {
  Children children;
  if (place == 0) {
    children.place[children.count++] = top_place(m);
    return children;
  }
  const int32_t half = lowest_bit(place) / 2;
  if (half == 0) return children;
  children.place[children.count++] = place - half;
  int32_t right = half;
  while (right > 0 && place + right > m) right /= 2;
  if (right > 0) children.place[children.count++] = place + right;
  return children;
}

// The place in a tree of the rank that is `distance` ranks after the root, and the reverse.
int32_t place_in(uint32_t tree, int32_t distance, int32_t m) {
  if (tree == 0 || distance == 0) return distance;
  if (m % 2 == 0) return m + 1 - distance;
  return distance == 1 ? m : distance - 1;
}
int32_t distance_of(uint32_t tree, int32_t place, int32_t m) {
  if (tree == 0 || place == 0) return place;
  if (m % 2 == 0) return m + 1 - place;
  return place == m ? 1 : place + 1;
}

TreeFamily family_of(const PlanRequest& request, uint32_t tree) {
  const int32_t n = request.group_size;
  const int32_t m = n - 1;
  auto rank_at = [&](int32_t place) { return (distance_of(tree, place, m) + request.root) % n; };
  const int32_t place = place_in(tree, (request.me - request.root + n) % n, m);
  TreeFamily family;
  if (place > 0) family.parent = rank_at(parent_place(place, m));
  const Children children = children_places(place, m);
  for (uint32_t i = 0; i < children.count; ++i) family.children.push_back(rank_at(children.place[i]));
  return family;
}

Plan build(const PlanRequest& asked) {
  CHECK(serves(asked.kind, asked.group_size), "dbtree does not serve this phase");
  if (asked.group_size == 1) return build_alone(asked);
  PlanBuilder builder(asked, kTrees);
  PlanRequest request = asked;
  if (request.kind == PhaseKind::kAllReduce) request.root = 0;
  const TreeFamily families[kTrees] = {family_of(request, 0), family_of(request, 1)};
  if (request.kind != PhaseKind::kBroadcast) {
    // A rank other than the root is an inner node of at most one tree, so one scratch block is enough.
    const bool to_output = request.kind == PhaseKind::kAllReduce || request.me == request.root;
    for (uint32_t t = 0; t < kTrees; ++t) tree_up(builder, families[t], t, to_output ? output(t) : scratch(0));
  }
  if (request.kind != PhaseKind::kReduce) {
    const bool broadcast = request.kind == PhaseKind::kBroadcast;
    for (uint32_t t = 0; t < kTrees; ++t) tree_down(builder, families[t], t, broadcast ? input(t) : output(t));
    if (broadcast && request.me == request.root) builder.copy(output(0, kTrees), input(0, kTrees), 0);
  }
  return std::move(builder).finish();
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const int32_t m = group_size - 1;
  uint32_t children = 0;  // of one rank in both trees, at most
  uint32_t links = 0;     // the children and the parents of a rank
  for (int32_t distance = 0; distance < group_size; ++distance) {
    uint32_t mine = 0;
    for (uint32_t t = 0; t < kTrees; ++t) mine += children_places(place_in(t, distance, m), m).count;
    children = std::max(children, mine);
    links = std::max(links, mine + (distance > 0 ? kTrees : 0));
  }
  // The leftmost place of an in-order tree is its deepest.
  uint32_t depth = 0;
  for (int32_t place = 1; place > 0; place = parent_place(place, m)) ++depth;
  if (kind == PhaseKind::kReduce) {
    return {.steps = depth,
            .sent_num = std::max(children, kTrees),
            .sent_den = kTrees,
            .reduced_num = children,
            .reduced_den = kTrees,
            .messages = links,
            .converges = group_size > 2};
  }
  if (kind == PhaseKind::kBroadcast) {
    return {.steps = depth,
            .sent_num = std::max(children, kTrees),
            .sent_den = kTrees,
            .messages = links,
            .converges = group_size > 2};
  }
  return {.steps = 2 * depth,
          .sent_num = links,
          .sent_den = kTrees,
          .reduced_num = children,
          .reduced_den = kTrees,
          .messages = 2 * links,
          .converges = group_size > 2};
}

}  // namespace
}  // namespace double_binary_tree

const Algorithm kDoubleBinaryTree{"dbtree", "two binary trees on half of the data each, pipelined",
                                  double_binary_tree::serves, double_binary_tree::build, double_binary_tree::cost};

}  // namespace trestle
