// hd: recursive halving for reduce-scatter, recursive doubling for all-gather, one after the other for all-reduce.
//
//   reduce-scatter, 4 ranks:      0   1 | 2   3      0-2 and 1-3 exchange halves, each sums its own half's blocks
//                                 0 | 1   2 | 3      0-1 and 2-3 exchange quarters
//   all-gather is the same in reverse: 0-1 and 2-3 swap a block, then 0-2 and 1-3 two blocks.
//
// Group sizes that are no powers of two: halves may differ by one rank (halves.h). The odd one of a larger lower half
// keeps its sums of its own half. It sends each block of the upper half directly to that block's owner, which adds it
// in its last reduction. So no rank gets a second half's worth of data, and there are at most ceil(log2 n) steps. In
// all-gather those owners send their blocks to the odd one at the start.
//
// Powers of two: a rank passes on half of what it received. Without care, for one partner of an exchange this is the
// half that came first, and for the other the half that came last; so they would be early or late. Instead every rank
// numbers the blocks (Plan::turned) so that what is passed on first comes first: the half that a rank gives away next
// before the half it keeps, and in an all-gather its own block before those received. Then all ranks are alike, and a
// step may begin with the first segment of the step before it. Only the four highest bits of a block's number are
// turned, so that a message has at most sixteen runs of blocks.
//
// Cost: at most ceil(log2 n) steps. (n-1)/n of the data each way for powers of two, the least possible; a little more
// otherwise (6/5 for 5 ranks, 37/33 for 33). All-reduce about twice that. Scratch: reduce-scatter at most ceil(n/2)
// blocks, the others none (all-reduce sums into the output).
//
// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19 (2005),
// sections 4.1, 4.4 and 4.5; uneven halves instead of their folding of extra ranks.
#include <algorithm>
#include <bit>

#include "algorithms/halves.h"
#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace halving_doubling {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 &&
         (kind == PhaseKind::kReduceScatter || kind == PhaseKind::kAllGather || kind == PhaseKind::kAllReduce);
}

// Where a rank's partial sums are: in the input until its first reduction, then in scratch (starting with logical block
// `base`) or output.
class Sums {
 public:
  explicit Sums(PhaseKind kind) : kind_(kind) {}
  BlockRange at(int32_t logical, uint32_t count) const { return {space_, block_of(logical - base_), count}; }
  // Where to write the reduction of the logical blocks from `logical` on. at() returns this place from then on.
  BlockRange next(int32_t logical, uint32_t count, bool last) {
    if (kind_ == PhaseKind::kAllReduce) {
      space_ = Space::kOutput;
    } else if (last) {
      return output(0);
    } else if (space_ == Space::kInput) {
      space_ = Space::kScratch;
      base_ = logical;
    }
    return at(logical, count);
  }

 private:
  PhaseKind kind_;
  Space space_ = Space::kInput;
  int32_t base_ = 0;
};

// A rank when blocks are turned: the number that it gives itself, and those that it gives others.
struct Turned {
  int32_t bits = 0;
  int32_t rank = 0;
  int32_t real(int32_t other) const { return other ^ bits; }
};

Turned turned(const PlanRequest& request) {
  static constexpr int32_t kRuns = 16;
  const int32_t n = request.group_size;
  if (!std::has_single_bit(static_cast<uint32_t>(n))) return {0, request.me};
  const int32_t high = (n - 1) & ~(std::max(n / kRuns, 1) - 1);
  const int32_t bits = (request.kind == PhaseKind::kAllGather ? request.me : ~request.me) & high;
  return {bits, request.me ^ bits};
}

void build_halving(PlanBuilder& builder, const PlanRequest& request) {
  const Turned me = turned(request);
  const HalvesPath path = halves_of(request.group_size, me.rank);
  Sums sums(request.kind);
  std::vector<int32_t> odd_ones;  // ranks that send my block to me directly
  for (uint32_t level = 0; level < path.count; ++level) {
    const Halves& group = path.groups[level];
    if (group.is_odd_one(me.rank)) {
      for (int32_t owner = group.middle; owner < group.high; ++owner) {
        builder.send(owner, sums.at(owner, 1), block_of(owner));
      }
      continue;
    }
    const bool upper = group.is_upper(me.rank);
    if (upper && group.has_odd_one()) odd_ones.push_back(group.odd_one());
    const int32_t partner = me.real(group.partner(me.rank));
    const int32_t kept = upper ? group.middle : group.low;
    const int32_t given = upper ? group.low : group.middle;
    const uint32_t kept_size = upper ? group.upper_size() : group.lower_size();
    const uint32_t given_size = upper ? group.lower_size() : group.upper_size();
    builder.send(partner, sums.at(given, given_size), block_of(given));
    const bool last = level + 1 == path.count;
    std::vector<Operand> sources{sums.at(kept, kept_size), from(partner)};
    if (last) {
      for (int32_t odd_one : odd_ones) sources.push_back(from(odd_one));
    }
    builder.reduce(sums.next(kept, kept_size, last), sources, block_of(kept));
  }
}

void build_doubling(PlanBuilder& builder, const PlanRequest& request) {
  const Turned me = turned(request);
  const HalvesPath path = halves_of(request.group_size, me.rank);
  const bool gather = request.kind == PhaseKind::kAllGather;
  const BlockRange mine = gather ? input(0) : output(block_of(me.rank));
  for (uint32_t level = path.count; level-- > 0;) {
    const Halves& group = path.groups[level];
    if (group.has_odd_one() && group.is_upper(me.rank)) builder.send(group.odd_one(), mine, block_of(me.rank));
  }
  if (gather) builder.copy(output(block_of(me.rank)), input(0), block_of(me.rank));
  for (uint32_t level = path.count; level-- > 0;) {
    const Halves& group = path.groups[level];
    if (group.is_odd_one(me.rank)) {
      for (int32_t owner = group.middle; owner < group.high; ++owner) {
        builder.recv(owner, output(block_of(owner)), block_of(owner));
      }
      continue;
    }
    const bool upper = group.is_upper(me.rank);
    const uint32_t low = block_of(group.low);
    const uint32_t middle = block_of(group.middle);
    const BlockRange lower_blocks = output(low, group.lower_size());
    const BlockRange upper_blocks = output(middle, group.upper_size());
    const BlockRange& own = upper ? upper_blocks : lower_blocks;
    const int32_t partner = me.real(group.partner(me.rank));
    builder.send(partner, own.count == 1 ? mine : own, own.first);
    builder.recv(partner, upper ? lower_blocks : upper_blocks, upper ? low : middle);
  }
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "halving-doubling does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, block_of(request.group_size), static_cast<uint32_t>(turned(request).bits));
  if (request.kind != PhaseKind::kAllGather) build_halving(builder, request);
  if (request.kind != PhaseKind::kReduceScatter) build_doubling(builder, request);
  return std::move(builder).finish();
}

// The messages of one rank in the halving. In the doubling, sent and received are swapped.
struct Traffic {
  uint32_t sent = 0, taken = 0;  // blocks
  uint32_t messages_sent = 0, messages_taken = 0;
};

Traffic halving_traffic(int32_t group_size, int32_t rank) {
  const HalvesPath path = halves_of(group_size, rank);
  Traffic traffic;
  for (uint32_t level = 0; level < path.count; ++level) {
    const Halves& group = path.groups[level];
    if (group.is_odd_one(rank)) {
      traffic.sent += group.upper_size();
      traffic.messages_sent += group.upper_size();
      continue;
    }
    const bool upper = group.is_upper(rank);
    const uint32_t extra = upper && group.has_odd_one() ? 1 : 0;
    traffic.sent += upper ? group.lower_size() : group.upper_size();
    traffic.taken += (upper ? group.upper_size() : group.lower_size()) + extra;
    traffic.messages_sent += 1;
    traffic.messages_taken += 1 + extra;
  }
  return traffic;
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint64_t>(group_size);
  AlgorithmCost cost{.steps = halves_steps(group_size), .sent_den = n, .converges = n > 2};
  if (kind == PhaseKind::kAllReduce) cost.steps *= 2;
  for (int32_t rank = 0; rank < group_size; ++rank) {
    const Traffic t = halving_traffic(group_size, rank);
    const bool all_reduce = kind == PhaseKind::kAllReduce;
    const uint64_t busiest = all_reduce ? t.sent + t.taken : std::max(t.sent, t.taken);
    const uint32_t messages = (all_reduce ? 2 : 1) * (t.messages_sent + t.messages_taken);
    cost.sent_num = std::max(cost.sent_num, busiest);
    cost.messages = std::max(cost.messages, messages);
    if (kind != PhaseKind::kAllGather) cost.reduced_num = std::max<uint64_t>(cost.reduced_num, t.taken);
  }
  if (kind != PhaseKind::kAllGather) cost.reduced_den = n;
  return cost;
}

BlockLoad load(PhaseKind kind, const BlockLengths& lengths) {
  BlockLoad busiest;
  for (int32_t rank = 0; rank < lengths.ranks(); ++rank) {
    const HalvesPath path = halves_of(lengths.ranks(), rank);
    uint64_t sent = 0;
    uint64_t taken = 0;
    for (uint32_t level = 0; level < path.count; ++level) {
      const Halves& group = path.groups[level];
      const uint64_t lower = lengths.range(group.low, group.middle);
      const uint64_t upper = lengths.range(group.middle, group.high);
      sent += group.is_upper(rank) ? lower : upper;
      if (group.is_odd_one(rank)) continue;
      taken += group.is_upper(rank) ? upper : lower;
      if (group.is_upper(rank) && group.has_odd_one()) taken += lengths.of(rank);
    }
    busiest.sent = std::max({busiest.sent, sent, taken});
    if (kind == PhaseKind::kReduceScatter) busiest.reduced = std::max(busiest.reduced, taken);
  }
  return busiest;
}

}  // namespace
}  // namespace halving_doubling

const Algorithm kHalvingDoubling{"hd",
                                 "recursive halving and doubling; least data in logarithmic steps",
                                 halving_doubling::serves,
                                 halving_doubling::build,
                                 halving_doubling::cost,
                                 nullptr,
                                 halving_doubling::load};

}  // namespace trestle
