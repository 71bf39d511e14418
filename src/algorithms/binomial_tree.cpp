// binomial: gather and scatter by halves. A rank collects the blocks of its part of the group and passes them on as one
// message.
//
//   4 ranks, gather to 1:    0  1  2  3     parts 0..1 and 2..3; the part without the root has its first rank for one
//                            |  ^  ^  |
//                            +--+  +--+     3 -> 2 (block 3), 0 -> 1 (block 0)
//                               ^  |
//                               +--+        2 -> 1 (blocks 2..3)
//   scatter: the same arrows reversed.
//
// A group is a range of ranks [first, last). The half without its root is rooted at its first rank and sends its whole
// range to the root. So every message is a range of consecutive blocks, whichever rank is the root. If groups are
// neighbours (ranks of one host), the data crosses to the others once. With a power of two it is the binomial tree.
//
// Cost: floor(log2 n) steps. ceil(log2 n) messages at the root, where direct has n-1. The root moves (n-1)/n of the
// data, the least possible, but inner blocks travel more than once. Scratch: inner ranks need space for their part.
//
// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19 (2005), section
// 4.2 (the scatter of a long broadcast); consecutive parts: Träff: On optimal trees for irregular gather and scatter
// collectives, IEEE TPDS 30 (2019).
#include <bit>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace binomial_tree {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && (kind == PhaseKind::kGather || kind == PhaseKind::kScatter);
}

// A range of consecutive ranks, and the rank that has, or gets, all of its blocks.
struct Part {
  int32_t first = 0;
  int32_t last = 0;  // excluded
  int32_t root = 0;
  uint32_t size() const { return static_cast<uint32_t>(last - first); }
};

// The parts with which a rank exchanges as the parent of their roots, the largest first, and its own part.
struct Family {
  Part mine;
  int32_t parent = kLocal;
  std::vector<Part> children;
};

Family family_of(const PlanRequest& request) {
  Family family;
  Part part{0, request.group_size, request.root};
  family.mine = part;
  while (part.size() > 1) {
    // If the size is odd, the root's half has one more. So the longest path does not depend on where the root is.
    const int32_t half = (part.last - part.first + 1) / 2;
    const bool root_is_low = part.root < part.first + half;
    const int32_t middle = root_is_low ? part.first + half : part.last - half;
    const Part low{part.first, middle, root_is_low ? part.root : part.first};
    const Part high{middle, part.last, root_is_low ? middle : part.root};
    const Part& with_root = root_is_low ? low : high;
    const Part& other = root_is_low ? high : low;
    if (request.me == part.root) family.children.push_back(other);
    const bool mine_is_low = request.me < middle;
    if (mine_is_low != root_is_low && request.me == other.root) {
      family.parent = part.root;
      family.mine = other;
    }
    part = mine_is_low == root_is_low ? with_root : other;
  }
  return family;
}

void build_gather(PlanBuilder& builder, const PlanRequest& request, const Family& family) {
  const uint32_t mine = block_of(request.me);
  const bool root = family.parent == kLocal;
  if (!root && family.children.empty()) {
    builder.send(family.parent, input(0), mine);
    return;
  }
  const uint32_t base = root ? 0 : block_of(family.mine.first);
  const auto at = [&](uint32_t block, uint32_t count) {
    return root ? output(block, count) : scratch(block - base, count);
  };
  builder.copy(at(mine, 1), input(0), mine);
  for (const Part& child : family.children) {
    const uint32_t first = block_of(child.first);
    builder.recv(child.root, at(first, child.size()), first);
  }
  if (!root) builder.send(family.parent, scratch(0, family.mine.size()), base);
}

void build_scatter(PlanBuilder& builder, const PlanRequest& request, const Family& family) {
  const uint32_t mine = block_of(request.me);
  const bool root = family.parent == kLocal;
  if (!root && family.children.empty()) {
    builder.recv(family.parent, output(0), mine);
    return;
  }
  const uint32_t base = root ? 0 : block_of(family.mine.first);
  const auto at = [&](uint32_t block, uint32_t count) {
    return root ? input(block, count) : scratch(block - base, count);
  };
  if (!root) builder.recv(family.parent, scratch(0, family.mine.size()), base);
  for (const Part& child : family.children) {
    const uint32_t first = block_of(child.first);
    builder.send(child.root, at(first, child.size()), first);
  }
  builder.copy(output(0), at(mine, 1), mine);
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "binomial does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, block_of(request.group_size));
  const Family family = family_of(request);
  if (request.kind == PhaseKind::kGather) {
    build_gather(builder, request, family);
  } else {
    build_scatter(builder, request, family);
  }
  return std::move(builder).finish();
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  return {.steps = static_cast<uint32_t>(std::bit_width(n)) - 1,
          .sent_num = n - 1,
          .sent_den = n,
          .messages = static_cast<uint32_t>(std::bit_width(n - 1)),
          .converges = kind == PhaseKind::kGather && n > 2};
}

}  // namespace
}  // namespace binomial_tree

const Algorithm kBinomialTree{"binomial", "gather and scatter by halves; few messages, blocks travel together",
                              binomial_tree::serves, binomial_tree::build, binomial_tree::cost};

}  // namespace trestle
