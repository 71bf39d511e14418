// rd: recursive doubling. In every step two groups merge: each rank exchanges all that it has with a partner of the
// other group.
//
//   all-reduce, 4 ranks:    0-1  2-3     all four hold the sum of a pair: 0+1, 0+1, 2+3, 2+3
//                           0-2  1-3     all hold (0+1) + (2+3)
//   all-gather: the same exchanges with the blocks gathered so far.
//
// Group sizes that are no powers of two: halves may differ by one rank (halves.h). The odd one of the lower half needs
// the data of the upper half. No rank needs the odd one's data, since the other ranks of its half hold the same. So the
// last rank of the upper half sends it a second copy. There are at most ceil(log2 n) steps for every n, without the two
// additional steps of folding extra ranks in.
//
// All-reduce: by induction all ranks of a group hold the same bits, and both sides add lower + upper in this order, so
// all ranks end with the same bits. Buffers alternate, because a rank must not overwrite what its partner still reads:
// 1 scratch block, 2 in place.
//
// Cost: at most ceil(log2 n) steps. All-reduce sends all data in every step (for small data); all-gather (n-1)/n of the
// data for powers of two.
//
// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19 (2005),
// sections 4.1 and 4.5.
#include <algorithm>

#include "algorithms/halves.h"
#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace recursive_doubling {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && (kind == PhaseKind::kAllReduce || kind == PhaseKind::kAllGather);
}

bool feeds_odd_one(const Halves& group, int32_t rank) {
  return group.has_odd_one() && rank == group.high - 1;
}
// The rank whose data `rank` gets: its partner, or for the odd one the last rank of the upper half.
int32_t giver(const Halves& group, int32_t rank) {
  return group.is_odd_one(rank) ? group.high - 1 : group.partner(rank);
}

// Where the sum after `merges` of all `total` merges is kept. Consecutive places differ; the first is the input, the
// last the output. In place these are the same memory. If total is odd then, the second scratch block breaks the
// alternation once.
BlockRange sum_at(uint32_t merges, uint32_t total, bool in_place) {
  if (merges == 0) return input(0);
  if (in_place && total % 2 == 1 && merges <= 2) return scratch(merges - 1);
  return (total - merges) % 2 == 0 ? output(0) : scratch(0);
}

void build_all_reduce(PlanBuilder& builder, const PlanRequest& request) {
  const HalvesPath path = halves_of(request.group_size, request.me);
  for (uint32_t merge = 0; merge < path.count; ++merge) {
    const Halves& group = path.groups[path.count - 1 - merge];
    const BlockRange sum = sum_at(merge, path.count, request.in_place);
    if (!group.is_odd_one(request.me)) builder.send(group.partner(request.me), sum, 0);
    if (feeds_odd_one(group, request.me)) builder.send(group.odd_one(), sum, 0);
    const Operand theirs = from(giver(group, request.me));
    const BlockRange next = sum_at(merge + 1, path.count, request.in_place);
    if (group.is_upper(request.me)) {
      builder.reduce(next, {theirs, sum}, 0);
    } else {
      builder.reduce(next, {sum, theirs}, 0);
    }
  }
  // A single merge in place ends in scratch.
  const BlockRange last = sum_at(path.count, path.count, request.in_place);
  if (last != output(0)) builder.copy(output(0), last, 0);
}

void build_all_gather(PlanBuilder& builder, const PlanRequest& request) {
  const HalvesPath path = halves_of(request.group_size, request.me);
  const uint32_t mine = block_of(request.me);
  builder.copy(output(mine), input(0), mine);
  for (uint32_t level = path.count; level-- > 0;) {
    const Halves& group = path.groups[level];
    const BlockRange lower = output(block_of(group.low), group.lower_size());
    const BlockRange upper = output(block_of(group.middle), group.upper_size());
    const BlockRange& own = group.is_upper(request.me) ? upper : lower;
    const BlockRange& other = group.is_upper(request.me) ? lower : upper;
    const BlockRange sent = own.count == 1 ? input(0) : own;
    if (!group.is_odd_one(request.me)) builder.send(group.partner(request.me), sent, own.first);
    if (feeds_odd_one(group, request.me)) builder.send(group.odd_one(), sent, own.first);
    builder.recv(giver(group, request.me), other, other.first);
  }
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "recursive doubling does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  const bool gather = request.kind == PhaseKind::kAllGather;
  PlanBuilder builder(request, gather ? block_of(request.group_size) : 1);
  if (gather) {
    build_all_gather(builder, request);
  } else {
    build_all_reduce(builder, request);
  }
  return std::move(builder).finish();
}

// Both sides put the lower half's ranks first.
bool in_rank_order(PhaseKind, int32_t) {
  return true;
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const bool gather = kind == PhaseKind::kAllGather;
  AlgorithmCost cost{.steps = halves_steps(group_size),
                     .sent_den = gather ? static_cast<uint64_t>(group_size) : 1,
                     .converges = group_size > 2};
  for (int32_t rank = 0; rank < group_size; ++rank) {
    const HalvesPath path = halves_of(group_size, rank);
    uint64_t sent = 0;
    uint64_t taken = 0;
    uint32_t messages = 0;
    for (uint32_t level = 0; level < path.count; ++level) {
      const Halves& group = path.groups[level];
      const uint32_t copies = (group.is_odd_one(rank) ? 0 : 1) + (feeds_odd_one(group, rank) ? 1 : 0);
      const bool upper = group.is_upper(rank);
      messages += copies + 1;
      sent += uint64_t{copies} * (!gather ? 1 : upper ? group.upper_size() : group.lower_size());
      taken += !gather ? 1 : upper ? group.lower_size() : group.upper_size();
    }
    cost.sent_num = std::max({cost.sent_num, sent, taken});
    cost.messages = std::max(cost.messages, messages);
    if (!gather) cost.reduced_num = std::max(cost.reduced_num, taken);
  }
  return cost;
}

BlockLoad load(PhaseKind, const BlockLengths& lengths) {
  BlockLoad busiest;
  for (int32_t rank = 0; rank < lengths.ranks(); ++rank) {
    const HalvesPath path = halves_of(lengths.ranks(), rank);
    uint64_t sent = 0;
    uint64_t taken = 0;
    for (uint32_t level = 0; level < path.count; ++level) {
      const Halves& group = path.groups[level];
      const uint32_t copies = (group.is_odd_one(rank) ? 0 : 1) + (feeds_odd_one(group, rank) ? 1 : 0);
      const uint64_t lower = lengths.range(group.low, group.middle);
      const uint64_t upper = lengths.range(group.middle, group.high);
      sent += copies * (group.is_upper(rank) ? upper : lower);
      taken += group.is_upper(rank) ? lower : upper;
    }
    busiest.sent = std::max({busiest.sent, sent, taken});
  }
  return busiest;
}

}  // namespace
}  // namespace recursive_doubling

const Algorithm kRecursiveDoubling{"rd",
                                   "recursive doubling; fewest steps, all data in each",
                                   recursive_doubling::serves,
                                   recursive_doubling::build,
                                   recursive_doubling::cost,
                                   recursive_doubling::in_rank_order,
                                   recursive_doubling::load};

}  // namespace trestle
