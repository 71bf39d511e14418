// dissemination: barrier in ceil(log2 n) rounds, for any n. In round k a rank signals the rank 2^k after it and awaits
// the rank 2^k before it.
//
//   4 ranks:   round 0   0 -> 1 -> 2 -> 3 -> 0     now each has heard of itself and the one before
//              round 1   0 <-> 2   1 <-> 3         and of the two before these
//
// A rank that has heard of m ranks up to itself hears of the m ranks before them in the next round. In the last round
// it hears of some a second time, which a barrier tolerates and a sum would not. So all ranks do the same work,
// whatever n is: one message out and one in per round.
//
// Cost: ceil(log2 n) steps, twice as many messages per rank; no data. Scratch: a block of no bytes per round.
//
// Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, International Journal of Parallel Programming 17
// (1988), section 3.
#include <bit>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace dissemination {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && kind == PhaseKind::kBarrier;
}

uint32_t rounds_of(int32_t n) {
  return static_cast<uint32_t>(std::bit_width(static_cast<uint32_t>(n) - 1));
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "dissemination does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, 1);
  const uint32_t rounds = rounds_of(request.group_size);
  BlockRange heard = input(0);
  for (uint32_t round = 0; round < rounds; ++round) {
    const auto distance = static_cast<int32_t>(1u << round);
    builder.send(neighbour(request, distance), heard, 0);
    builder.reduce(scratch(round), {heard, from(neighbour(request, -distance))}, 0);
    heard = scratch(round);
  }
  // Copied last: in place the output is the input, which a peer may still have to take.
  builder.copy(output(0), heard, 0);
  return std::move(builder).finish();
}

AlgorithmCost cost(PhaseKind, int32_t group_size) {
  if (group_size == 1) return {};
  const uint32_t rounds = rounds_of(group_size);
  return {
      .steps = rounds, .sent_num = rounds, .reduced_num = rounds, .messages = 2 * rounds, .converges = group_size > 2};
}

}  // namespace
}  // namespace dissemination

const Algorithm kDissemination{"dissemination", "barrier in log2(n) rounds; one message each way in each",
                               dissemination::serves, dissemination::build, dissemination::cost};

}  // namespace trestle
