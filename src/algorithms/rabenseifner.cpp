// rabenseifner: first halving among neighbours, so that every sum covers consecutive ranks, in rank order. Then
// doubling (all-reduce) or a gather to the root (reduce), along the same exchanges in reverse.
//
//   4 ranks, blocks of the vector 0..3:   0-1 and 2-3 exchange halves: 0 and 2 keep blocks 0..1, 1 and 3 blocks 2..3
//                                         0-2 and 1-3 exchange quarters: 0 keeps 0, 2 keeps 1, 1 keeps 2, 3 keeps 3
//     all-reduce                          0-2 and 1-3 exchange quarters, 0-1 and 2-3 halves
//     reduce to 0                         2 sends block 1 to 0 and 3 block 3 to 1; 1 sends blocks 2..3 to 0
//
// hd halves in the other order (0-2 first). That leaves rank r with block r, as a reduce-scatter needs it, but adds up
// ranks that are not neighbours.
//
// Group sizes that are no powers of two: if the size is k above a power of two, the first k pairs of neighbours become
// one rank each. One of a pair sends all its data to the other (the root, else the lower one). That one acts for both,
// and sends back the result at the end of an all-reduce.
//
// Cost: 2 log2 n steps. For powers of two 2(n-1)/n of the data each way, the least possible for an all-reduce. (Reduce:
// that much at the root; the others receive less than that and send less than 3/2 of the data.) For other sizes all
// data once more in and, in an all-reduce, out. Scratch: all-reduce none; reduce half of the blocks, or all of them
// where two ranks became one.
//
// Rabenseifner: Optimization of collective reduction operations, ICCS 2004, LNCS 3036.
#include <algorithm>
#include <bit>
#include <vector>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace rabenseifner {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && (kind == PhaseKind::kAllReduce || kind == PhaseKind::kReduce);
}

// The ranks that continue after pairs of neighbours have become one, numbered in rank order: a power of two of them.
struct Survivors {
  int32_t count = 1;
  int32_t pairs = 0;
  int32_t root = 0;  // a rank

  Survivors(int32_t group_size, int32_t root_rank)
      : count(static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(group_size)))),
        pairs(group_size - count),
        root(root_rank) {}
  bool is_paired(int32_t rank) const { return rank < 2 * pairs; }
  int32_t index_of(int32_t rank) const { return is_paired(rank) ? rank / 2 : rank - pairs; }
  int32_t rank_of(int32_t index) const {
    if (index >= pairs) return index + pairs;
    return root == 2 * index + 1 ? root : 2 * index;
  }
};

struct Range {
  uint32_t first = 0;
  uint32_t count = 0;
  Range half(bool upper) const { return {upper ? first + count / 2 : first, count / 2}; }
};

// Where a rank's sums are. In the input until its first reduction.
class Sums {
 public:
  Sums(bool to_output, uint32_t scratch_base) : to_output_(to_output), base_(scratch_base) {}
  BlockRange at(Range range) const { return reduced_ ? place(range) : input(range.first, range.count); }
  BlockRange place(Range range) const {
    return to_output_ ? output(range.first, range.count) : scratch(range.first - base_, range.count);
  }
  void reduced() { reduced_ = true; }

 private:
  bool to_output_;
  bool reduced_ = false;
  uint32_t base_;
};

class Writer {
 public:
  Writer(PlanBuilder& builder, const PlanRequest& request)
      : builder_(builder),
        all_(request.kind == PhaseKind::kAllReduce),
        me_(request.me),
        survivors_(request.group_size, all_ ? 0 : request.root),
        whole_{0, static_cast<uint32_t>(survivors_.count)},
        index_(survivors_.index_of(me_)),
        levels_(std::bit_width(whole_.count) - 1),
        sums_(all_ || me_ == request.root, survivors_.is_paired(me_) ? 0 : kept(1).first) {}

  void write() {
    if (survivors_.is_paired(me_) && !become_one()) return;
    for (int32_t level = 0; level < levels_; ++level) halve(level);
    for (int32_t level = levels_; level-- > 0;) {
      if (!(all_ ? double_up(level) : gather(level))) return;
    }
    if (all_ && survivors_.is_paired(me_)) builder_.send(me_ ^ 1, output(0, whole_.count), 0);
  }

 private:
  // The blocks that this rank keeps after that many exchanges.
  Range kept(int32_t exchanges) const {
    Range range = whole_;
    for (int32_t level = 0; level < exchanges; ++level) range = range.half((index_ >> level & 1) != 0);
    return range;
  }
  int32_t partner(int32_t level) const { return survivors_.rank_of(index_ ^ (1 << level)); }

  void add(Range range, int32_t peer) {
    std::vector<Operand> sources{sums_.at(range), from(peer)};
    if (peer < me_) std::swap(sources[0], sources[1]);
    builder_.reduce(sums_.place(range), sources, range.first);
  }

  // False: the other rank of the pair continues.
  bool become_one() {
    const int32_t other = me_ ^ 1;
    if (survivors_.rank_of(index_) != me_) {
      builder_.send(other, input(0, whole_.count), 0);
      if (all_) builder_.recv(other, output(0, whole_.count), 0);
      return false;
    }
    add(whole_, other);
    sums_.reduced();
    return true;
  }

  void halve(int32_t level) {
    const bool upper = (index_ >> level & 1) != 0;
    const Range before = kept(level);
    const Range given = before.half(!upper);
    builder_.send(partner(level), sums_.at(given), given.first);
    add(before.half(upper), partner(level));
    sums_.reduced();
  }

  bool double_up(int32_t level) {
    const Range own = kept(level + 1);
    const Range other = kept(level).half((index_ >> level & 1) == 0);
    builder_.send(partner(level), output(own.first, own.count), own.first);
    builder_.recv(partner(level), output(other.first, other.count), other.first);
    return true;
  }

  // Of two partners, the one that differs from the root in fewer of the exchanges still to come takes the blocks of
  // both. False: this rank has passed on its blocks.
  bool gather(int32_t level) {
    const int32_t differs = index_ ^ survivors_.index_of(survivors_.root);
    const Range own = kept(level + 1);
    if ((differs >> level & 1) != 0) {
      builder_.send(partner(level), sums_.at(own), own.first);
      return false;
    }
    const Range other = kept(level).half((index_ >> level & 1) == 0);
    builder_.recv(partner(level), sums_.place(other), other.first);
    return true;
  }

  PlanBuilder& builder_;
  const bool all_;
  const int32_t me_;
  const Survivors survivors_;
  const Range whole_;
  const int32_t index_;
  const int32_t levels_;
  Sums sums_;
};

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "rabenseifner does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, std::bit_floor(block_of(request.group_size)));
  Writer(builder, request).write();
  return std::move(builder).finish();
}

bool in_rank_order(PhaseKind, int32_t) {
  return true;
}

// The longest chain of messages, by survivor. The chain of a pair begins with one.
uint32_t longest_chain(const Survivors& survivors, bool all, int32_t levels) {
  std::vector<uint32_t> chain(static_cast<size_t>(survivors.count), 0);
  std::fill(chain.begin(), chain.begin() + survivors.pairs, 1);
  const auto exchange = [&](int32_t level) {
    for (int32_t lower = 0; lower < survivors.count; ++lower) {
      if ((lower >> level & 1) != 0) continue;
      uint32_t& a = chain[static_cast<size_t>(lower)];
      uint32_t& b = chain[static_cast<size_t>(lower | 1 << level)];
      const uint32_t before = a;
      a = std::max(a, b + 1);
      b = std::max(b, before + 1);
    }
  };
  for (int32_t level = 0; level < levels; ++level) exchange(level);
  // For the rank that is left at the end, a gather is as deep as an exchange.
  const auto root = static_cast<size_t>(survivors.index_of(survivors.root));
  for (int32_t level = levels; level-- > 0;) exchange(level);
  if (!all) return chain[root];
  const uint32_t results = survivors.pairs == 0 ? 0 : *std::max_element(chain.begin(), chain.begin() + survivors.pairs);
  return std::max(*std::max_element(chain.begin(), chain.end()), results + 1);
}

// For a reduce: assumes that the root is in the middle. The busiest rank is the root, or one that acts for two.
AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const bool all = kind == PhaseKind::kAllReduce;
  const Survivors survivors(group_size, all ? 0 : group_size / 2);
  const auto p = static_cast<uint32_t>(survivors.count);
  const int32_t levels = std::bit_width(p) - 1;
  AlgorithmCost cost{.steps = longest_chain(survivors, all, levels), .sent_den = p, .reduced_den = p};
  cost.converges = group_size > 2;
  for (uint32_t index = 0; index < p; ++index) {
    const uint32_t pair = survivors.is_paired(survivors.rank_of(static_cast<int32_t>(index))) ? 1 : 0;
    // In the second half it receives in this many exchanges. In a reduce it then sends, unless it is the root.
    const uint32_t differs = index ^ static_cast<uint32_t>(survivors.index_of(survivors.root));
    const uint32_t sends_at = std::bit_width(differs);  // 0: never
    const uint32_t back = all ? p - 1 : (p >> sends_at) - 1;
    const auto exchanges = static_cast<uint32_t>(levels);
    const uint32_t last_messages = all ? 2 * exchanges + pair : exchanges - sends_at + (sends_at != 0 ? 1 : 0);
    cost.sent_num = std::max<uint64_t>(cost.sent_num, pair * p + p - 1 + back);
    cost.reduced_num = std::max<uint64_t>(cost.reduced_num, pair * p + p - 1);
    cost.messages = std::max(cost.messages, pair + 2 * exchanges + last_messages);
  }
  return cost;
}

}  // namespace
}  // namespace rabenseifner

const Algorithm kRabenseifner{"rabenseifner",       "halving among neighbours, then back; least data, in rank order",
                              rabenseifner::serves, rabenseifner::build,
                              rabenseifner::cost,   rabenseifner::in_rank_order};

}  // namespace trestle
