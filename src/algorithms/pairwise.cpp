// pairwise: all-to-all in n-1 steps, in each of which every rank sends to one rank and receives from one.
//
//   4 ranks (a power of two):  step 1   0 <-> 1   2 <-> 3      in step s rank r exchanges with r ^ s
//                              step 2   0 <-> 2   1 <-> 3
//                              step 3   0 <-> 3   1 <-> 2
//   other sizes:               in step s rank r sends to r + s and receives from r - s
//
// Cost: n-1 steps, n-1 messages of one block: (n-1)/n of the data, the least possible. Direct moves as much in one
// step. But here each port has only one sender at a time. So senders do not congest a port, and a message that is
// divided over several links gets the full rate of each. For large blocks over a network. The steps overlap by one:
// when the last segments of a block are under way, the first ones of the next block fill the window (Step::after).
// Every block goes directly from its owner to its receiver. So this algorithm serves all-to-all-v too.
//
// In place, a block that arrives before the old one at its place has left would destroy it. Such blocks are copied
// first. With powers of two, one rank of each pair copies its block, so a rank copies in about half of its steps. With
// other sizes, a rank copies the blocks that leave in the second half of the steps. At most n/2 blocks of scratch.
//
// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19 (2005), section
// 4.3 (pairwise exchange).
#include <bit>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && with_known_blocks(kind) == PhaseKind::kAllToAll;
}

// Whether rank `me` copies its block of step `step` before it is sent, where the two ranks of a pair exchange. Exactly
// one of the two does: they differ in the lowest bit of the step.
bool copies_in_pair(int32_t me, int32_t step) {
  const int low = std::countr_zero(static_cast<uint32_t>(step));
  return (((me >> low) ^ (step >> (low + 1))) & 1) != 0;
}

// Where the block of each step is sent from: the input, or a copy.
class Sources {
 public:
  explicit Sources(const PlanRequest& request)
      : request_(request), pairs_(std::has_single_bit(static_cast<uint32_t>(request.group_size))) {}

  int32_t to(int32_t step) const { return pairs_ ? request_.me ^ step : neighbour(request_, step); }
  int32_t from(int32_t step) const { return pairs_ ? request_.me ^ step : neighbour(request_, -step); }

  // Copies the block at the place where step `step` receives, if it has not left by then.
  void clear(PlanBuilder& builder, int32_t step) {
    if (!request_.in_place) return;
    const int32_t leaves = pairs_ ? step : request_.group_size - step;
    const bool copies = pairs_ ? copies_in_pair(request_.me, step) : copies_at(step, leaves);
    if (!copies) return;
    const uint32_t block = block_of(to(leaves));
    builder.copy(scratch(used_), input(block), block);
    copied_.resize(static_cast<size_t>(request_.group_size), kNone);
    copied_[static_cast<size_t>(leaves)] = used_++;
  }

  BlockRange of(int32_t step) const {
    const auto at = static_cast<size_t>(step);
    if (at < copied_.size() && copied_[at] != kNone) return scratch(copied_[at]);
    return input(block_of(to(step)));
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // With r + s: the block leaves later than it is needed. Halfway round both are the same step, and as in a pair only
  // one rank copies.
  bool copies_at(int32_t step, int32_t leaves) const {
    return step < leaves || (step == leaves && request_.me < to(leaves));
  }

  const PlanRequest& request_;
  const bool pairs_;
  uint32_t used_ = 0;
  std::vector<uint32_t> copied_;  // by step
};

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "pairwise does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, block_of(request.group_size));
  Sources sources(request);
  const uint32_t mine = block_of(request.me);
  uint32_t sent = kNoStep;
  uint32_t received = kNoStep;
  for (int32_t step = 1; step < request.group_size; ++step) {
    sources.clear(builder, step);
    builder.send(sources.to(step), sources.of(step), block_of(sources.to(step)));
    if (sent != kNoStep) builder.in_turn_after(sent);
    sent = builder.last();
    builder.recv(sources.from(step), output(block_of(sources.from(step))), mine);
    if (received != kNoStep) builder.in_turn_after(received);
    received = builder.last();
  }
  builder.copy(output(mine), input(mine), mine);
  return std::move(builder).finish();
}

AlgorithmCost cost(PhaseKind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  return {.steps = n - 1, .sent_num = n - 1, .sent_den = n, .messages = 2 * (n - 1)};
}

}  // namespace

const Algorithm kPairwise{"pairwise", "all-to-all in n-1 steps, one sender and one receiver at a time; for large data",
                          serves, build, cost};

}  // namespace trestle
