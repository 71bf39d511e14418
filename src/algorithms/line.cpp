// line: every rank talks only to the ranks before and after it. Sums run along the line from both ends towards the rank
// that they are for, and collect each rank's part on their way. That is what a ring does, but in rank order.
//
//   reduce-scatter, 4 ranks:   0 --1,2,3--> 1 --2,3--> 2 --3--> 3      sums of the ranks from 0 on, of these blocks
//                              0 <--0-- 1 <--0,1-- 2 <--0,1,2-- 3      sums of the ranks from the last one down
//                              rank r adds, of block r: sum of 0..r-1, own part, sum of r+1..n-1
//   reduce:  the same with one block, to the root.
//
// Every sum covers consecutive ranks and is combined in rank order, so that operators need not be commutative. The
// engine's segments make both directions pipelines. Blocks that go beyond the next rank leave before that rank's own
// block, as messages of their own.
//
// Cost: n-1 steps. Reduce-scatter: a rank sends (n-1)/n of the data, the least possible. It receives (n+1)/n if it is
// between two others, because both directions bring a sum of its own block. Reduce: as many steps as the distance from
// the root to the farther end; all data once, twice at a root between two others. Scratch: reduce-scatter n-1 blocks,
// reduce 1.
//
// The pipelined chain of Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra: Performance analysis of MPI
// collective operations, Cluster Computing 10 (2007), from both ends.
#include <algorithm>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace line {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && (kind == PhaseKind::kReduceScatter || kind == PhaseKind::kReduce);
}

// One direction of a reduce-scatter, seen from a rank. Blocks [first, first + count) pass through to `next`; block
// `wanted` of them is the next rank's own.
struct Passing {
  int32_t previous = kLocal;  // kLocal: the line begins here
  int32_t next = kLocal;
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t wanted = 0;
  uint32_t scratch_first = 0;
};

void pass_on(PlanBuilder& builder, const Passing& way, bool upwards) {
  if (way.next == kLocal) return;
  BlockRange sums = input(way.first, way.count);
  if (way.previous != kLocal) {
    const BlockRange own = sums;
    sums = scratch(way.scratch_first, way.count);
    if (upwards) {
      builder.reduce(sums, {from(way.previous), own}, way.first);
    } else {
      builder.reduce(sums, {own, from(way.previous)}, way.first);
    }
  }
  const uint32_t beyond = upwards ? 1 : 0;  // the next rank's block is the first one upwards, the last one downwards
  if (way.count > 1) {
    builder.send(way.next, {sums.space, sums.first + beyond, way.count - 1}, way.first + beyond);
  }
  builder.send(way.next, {sums.space, sums.first + (way.wanted - way.first), 1}, way.wanted);
}

void build_reduce_scatter(PlanBuilder& builder, const PlanRequest& request) {
  const int32_t n = request.group_size;
  const int32_t me = request.me;
  const uint32_t mine = block_of(me);
  const int32_t below = me > 0 ? me - 1 : kLocal;
  const int32_t above = me + 1 < n ? me + 1 : kLocal;
  pass_on(builder, {below, above, mine + 1, block_of(n) - mine - 1, mine + 1, 0}, true);
  pass_on(builder, {above, below, 0, mine, mine - 1, block_of(n) - mine - 1}, false);
  std::vector<Operand> sources;
  if (below != kLocal) sources.push_back(from(below));
  sources.emplace_back(input(mine));
  if (above != kLocal) sources.push_back(from(above));
  builder.reduce(output(0), sources, mine);
}

void build_reduce(PlanBuilder& builder, const PlanRequest& request) {
  const int32_t me = request.me;
  const bool at_root = me == request.root;
  std::vector<Operand> sources;
  if (me > 0 && me <= request.root) sources.push_back(from(me - 1));
  sources.emplace_back(input(0));
  if (me + 1 < request.group_size && me >= request.root) sources.push_back(from(me + 1));
  BlockRange sum = input(0);
  if (sources.size() > 1) {
    sum = at_root ? output(0) : scratch(0);
    builder.reduce(sum, sources, 0);
  }
  if (!at_root) builder.send(me < request.root ? me + 1 : me - 1, sum, 0);
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "line does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  const bool scatter = request.kind == PhaseKind::kReduceScatter;
  PlanBuilder builder(request, scatter ? block_of(request.group_size) : 1);
  if (scatter) {
    build_reduce_scatter(builder, request);
  } else {
    build_reduce(builder, request);
  }
  return std::move(builder).finish();
}

bool in_rank_order(PhaseKind, int32_t) {
  return true;
}

// For a reduce: assumes that the root is in the middle.
AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  const bool inner = n > 2;  // some rank is between two others
  if (kind == PhaseKind::kReduce) {
    const uint32_t ways = inner ? 2 : 1;
    return {.steps = n / 2, .sent_num = ways, .reduced_num = ways, .messages = ways, .converges = inner};
  }
  // Messages with one neighbour: two each way, but one where only one block goes there.
  const uint32_t messages = !inner ? 2 : n == 3 ? 6 : n == 4 ? 7 : 8;
  const uint32_t most = inner ? n + 1 : 1;
  return {.steps = n - 1,
          .sent_num = most,
          .sent_den = n,
          .reduced_num = most,
          .reduced_den = n,
          .messages = messages,
          .converges = inner};
}

BlockLoad load(PhaseKind, const BlockLengths& lengths) {
  const int32_t n = lengths.ranks();
  BlockLoad busiest;
  for (int32_t rank = 0; rank < n; ++rank) {
    const uint64_t mine = lengths.of(rank);
    const uint64_t others = lengths.total() - mine;
    const bool inner = rank > 0 && rank + 1 < n;
    const uint64_t taken = (rank > 0 ? lengths.range(rank, n) : 0) + (rank + 1 < n ? lengths.range(0, rank + 1) : 0);
    busiest.sent = std::max({busiest.sent, others, taken});
    busiest.reduced = std::max(busiest.reduced, inner ? taken : mine);
  }
  return busiest;
}

}  // namespace
}  // namespace line

const Algorithm kLine{
    "line",       "neighbours in rank order, sums from both ends; for operators that are not commutative",
    line::serves, line::build,
    line::cost,   line::in_rank_order,
    line::load};

}  // namespace trestle
