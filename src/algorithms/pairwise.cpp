// pairwise: all-to-all in n-1 steps, in each of which every rank sends to one rank and receives from one.
//
//   4 ranks (a power of two):  step 1   0 <-> 1   2 <-> 3      in step s rank r exchanges with r ^ s
//                              step 2   0 <-> 2   1 <-> 3
//                              step 3   0 <-> 3   1 <-> 2
//   other sizes:               in step s rank r sends to r + s and receives from r - s
//
// Cost: n-1 steps, in each of which a rank sends a block, whole or in two halves: (n-1)/n of the data, the least
// possible. Direct moves as much in one step. But here each port has only one sender at a time. So senders do not
// congest a port, and a message that is divided over several links gets the full rate of each. For large blocks over a
// network. The steps overlap by one: when the last segments of a block are under way, the first ones of the next block
// fill the window (Step::after). Every block goes directly from its owner to its receiver. So this algorithm serves
// all-to-all-v too.
//
// Two ranks that exchange blocks with each other (with a power of two in every step, with another even size halfway
// round) do so in halves: one begins with the first half, the other one with the second. Not in all-to-all-v, where a
// pair has one message in each direction, which tells the length.
//
// In place, a block that arrives before the old one at its place has left would destroy it. In a pair, each rank first
// copies the half that it sends last. So the peer's first half can arrive at once, and its second half where the rank's
// own first half has left: half a block earlier. Without halves one of the two copies its block, and the other one
// receives when its own block has left. Not in a pair, a rank copies the blocks that leave in the second half of the
// steps. At most n/2 blocks of scratch. The halves are the same when not in place, because each rank decides for itself
// whether it works in place.
//
// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19 (2005), section
// 4.3 (pairwise exchange).
#include <bit>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace pairwise {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && with_known_blocks(kind) == PhaseKind::kAllToAll;
}

// Steps in which two ranks exchange blocks with each other.
uint32_t steps_in_pairs(int32_t group_size) {
  if (std::has_single_bit(block_of(group_size))) return block_of(group_size) - 1;
  return group_size % 2 == 0 ? 1 : 0;
}

bool in_halves(PhaseKind kind, int32_t group_size) {
  return kind == PhaseKind::kAllToAll && steps_in_pairs(group_size) > 0;
}

// Whether rank `me` of a pair copies its block where there are no halves. Exactly one of the two does. With powers of
// two each rank does in about half of its steps: the two ranks differ in the lowest bit of the step.
bool copies_whole(int32_t me, int32_t peer) {
  const auto step = block_of(me) ^ block_of(peer);
  const int low = std::countr_zero(step);
  return (((block_of(me) >> low) ^ (step >> (low + 1))) & 1) != 0;
}

class Builder {
 public:
  explicit Builder(const PlanRequest& request)
      : request_(request),
        parts_(in_halves(request.kind, request.group_size) ? 2 : 1),
        pairs_(std::has_single_bit(block_of(request.group_size))),
        builder_(request, parts_ * block_of(request.group_size)) {}

  void step(int32_t number) {
    const bool pair = pairs_ || 2 * number == request_.group_size;
    const int32_t peer = pairs_ ? request_.me ^ number : neighbour(request_, number);
    if (!pair) return pass_on(number);
    if (parts_ == 2) return exchange_halves(peer);
    exchange(peer);
  }

  Plan finish() && {
    builder_.copy(output(begin(request_.me), parts_), input(begin(request_.me), parts_), begin(request_.me));
    return std::move(builder_).finish();
  }

 private:
  uint32_t begin(int32_t rank) const { return parts_ * block_of(rank); }

  // The lower rank sends its first half first, so the peer's second one arrives meanwhile.
  void exchange_halves(int32_t peer) {
    const uint32_t early = request_.me < peer ? 0 : 1;
    const uint32_t late = 1 - early;
    const uint32_t theirs = begin(peer);
    const BlockRange last = request_.in_place ? copied(input(theirs + late), theirs + late) : input(theirs + late);
    send(peer, input(theirs + early), theirs + early);
    recv(peer, output(theirs + late), begin(request_.me) + late);
    send(peer, last, theirs + late);
    recv(peer, output(theirs + early), begin(request_.me) + early);
  }

  void exchange(int32_t peer) {
    const uint32_t block = block_of(peer);
    const bool copies = request_.in_place && copies_whole(request_.me, peer);
    send(peer, copies ? copied(input(block), block) : input(block), block);
    recv(peer, output(block), block_of(request_.me));
  }

  // Sends to me + number and receives from me - number.
  void pass_on(int32_t number) {
    const int32_t to = neighbour(request_, number);
    const int32_t from = neighbour(request_, -number);
    // The block at the place of what is received leaves in step n - number.
    if (request_.in_place && 2 * number < request_.group_size) copied(input(begin(from), parts_), begin(from));
    const bool copied = request_.in_place && 2 * number > request_.group_size;
    send(to, copied ? copy_of(number) : input(begin(to), parts_), begin(to));
    recv(from, output(begin(from), parts_), begin(request_.me));
  }

  BlockRange copied(BlockRange blocks, uint32_t logical_first) {
    const BlockRange copy = scratch(scratch_, blocks.count);
    scratch_ += blocks.count;
    builder_.copy(copy, blocks, logical_first);
    return copy;
  }

  // The copy of the block that leaves in step `number`: it was made in step n - number, the first one being step 1.
  BlockRange copy_of(int32_t number) const {
    return scratch(parts_ * block_of(request_.group_size - number - 1), parts_);
  }

  void send(int32_t peer, BlockRange source, uint32_t logical_first) {
    builder_.send(peer, source, logical_first);
    if (sent_ != kNoStep) builder_.in_turn_after(sent_);
    sent_ = builder_.last();
  }

  void recv(int32_t peer, BlockRange destination, uint32_t logical_first) {
    builder_.recv(peer, destination, logical_first);
    if (received_ != kNoStep) builder_.in_turn_after(received_);
    received_ = builder_.last();
  }

  const PlanRequest& request_;
  const uint32_t parts_;
  const bool pairs_;
  PlanBuilder builder_;
  uint32_t scratch_ = 0;  // blocks used
  uint32_t sent_ = kNoStep;
  uint32_t received_ = kNoStep;
};

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "pairwise does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  Builder builder(request);
  for (int32_t step = 1; step < request.group_size; ++step) builder.step(step);
  return std::move(builder).finish();
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  const uint32_t messages = n - 1 + (in_halves(kind, group_size) ? steps_in_pairs(group_size) : 0);
  return {.steps = n - 1, .sent_num = n - 1, .sent_den = n, .messages = 2 * messages};
}

}  // namespace
}  // namespace pairwise

const Algorithm kPairwise{"pairwise", "all-to-all in n-1 steps, one sender and one receiver at a time; for large data",
                          pairwise::serves, pairwise::build, pairwise::cost};

}  // namespace trestle
