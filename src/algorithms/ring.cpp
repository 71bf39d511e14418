// ring: every rank talks only to its two neighbours. A block travels around the ring and collects or leaves data on its
// way.
//
//   reduce-scatter, 4 ranks (block b starts at rank b+1 and ends, complete, at rank b):
//     round 0   0 --3--> 1 --0--> 2 --1--> 3 --2--> 0      each receiver adds its own part of that block
//     round 1   0 --2--> 1 --3--> 2 --0--> 3 --1--> 0
//     round 2   0 --1--> 1 --2--> 2 --3--> 3 --0--> 0      rank r now holds block r
//   all-gather: rank r starts with block r and passes on the block it received last, n-1 rounds.
//   all-reduce: a reduce-scatter, then an all-gather.
//
// chain: a second name for a ring in a broadcast or reduce: one block travels through the chain that starts or ends at
// the root. The engine's segments make it a pipeline: a rank passes on a segment while the next one arrives.
//
//   root 1:   broadcast  1 ---> 2 ---> 3 ---> 0        reduce  2 ---> 3 ---> 0 ---> 1
//
// With s segments of equal length the last rank has all data after the time of n-2+s segments. For large data every
// link carries the data just once, the least possible; the inner ranks of a tree send it twice. For small data n-1
// steps are too many.
//
// Cost: n-1 steps and (n-1)/n of the data each way, the least possible; all-reduce twice that. Chains: n-1 steps, all
// data. Scratch: reduce-scatter 2 blocks, used in turn; all-reduce none (partial sums go to the output); reduce 1.
// Order of summation of block b: ranks b+1, b+2, ... b.
//
// Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, J. Parallel Distrib. Comput.
// 69 (2009). Pipelined chain: Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel, Dongarra: Performance analysis of MPI
// collective operations, Cluster Computing 10 (2007).
#include <algorithm>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace ring {
namespace {

bool chain_serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && (kind == PhaseKind::kReduce || kind == PhaseKind::kBroadcast);
}

bool serves(PhaseKind kind, int32_t group_size) {
  if (group_size < 1) return false;
  switch (kind) {
    case PhaseKind::kReduceScatter:
    case PhaseKind::kAllGather:
    case PhaseKind::kAllReduce:
      return true;
    default:
      return chain_serves(kind, group_size);
  }
}

void build_reduce_scatter(PlanBuilder& builder, const PlanRequest& request) {
  const int32_t rounds = request.group_size - 1;
  const int32_t next = neighbour(request, 1);
  const int32_t previous = neighbour(request, -1);
  for (int32_t round = 0; round < rounds; ++round) {
    const uint32_t sent = block_of(neighbour(request, -1 - round));
    const uint32_t taken = block_of(neighbour(request, -2 - round));
    const auto turn = static_cast<uint32_t>(round % 2);
    builder.send(next, round == 0 ? input(sent) : scratch(1 - turn), sent);
    builder.reduce(round == rounds - 1 ? output(0) : scratch(turn), {from(previous), input(taken)}, taken);
  }
}

void build_all_gather(PlanBuilder& builder, const PlanRequest& request) {
  const uint32_t mine = block_of(request.me);
  for (int32_t round = 0; round < request.group_size - 1; ++round) {
    const uint32_t sent = block_of(neighbour(request, -round));
    const uint32_t taken = block_of(neighbour(request, -1 - round));
    builder.send(neighbour(request, 1), round == 0 ? input(0) : output(sent), sent);
    builder.recv(neighbour(request, -1), output(taken), taken);
  }
  builder.copy(output(mine), input(0), mine);
}

void build_all_reduce(PlanBuilder& builder, const PlanRequest& request) {
  const int32_t rounds = request.group_size - 1;
  const int32_t next = neighbour(request, 1);
  const int32_t previous = neighbour(request, -1);
  for (int32_t round = 0; round < rounds; ++round) {
    const uint32_t sent = block_of(neighbour(request, -1 - round));
    const uint32_t taken = block_of(neighbour(request, -2 - round));
    builder.send(next, round == 0 ? input(sent) : output(sent), sent);
    builder.reduce(output(taken), {from(previous), input(taken)}, taken);
  }
  for (int32_t round = 0; round < rounds; ++round) {
    const uint32_t sent = block_of(neighbour(request, -round));
    const uint32_t taken = block_of(neighbour(request, -1 - round));
    builder.send(next, output(sent), sent);
    builder.recv(previous, output(taken), taken);
  }
}

void build_broadcast(PlanBuilder& builder, const PlanRequest& request) {
  const int32_t next = neighbour(request, 1);
  if (request.me == request.root) {
    builder.send(next, input(0), 0);
    builder.copy(output(0), input(0), 0);
    return;
  }
  builder.recv(neighbour(request, -1), output(0), 0);
  if (next != request.root) builder.send(next, output(0), 0);
}

void build_reduce(PlanBuilder& builder, const PlanRequest& request) {
  const int32_t previous = neighbour(request, -1);
  const int32_t next = neighbour(request, 1);
  if (request.me == request.root) {
    builder.reduce(output(0), {from(previous), input(0)}, 0);
  } else if (previous == request.root) {
    builder.send(next, input(0), 0);
  } else {
    builder.reduce(scratch(0), {from(previous), input(0)}, 0);
    builder.send(next, scratch(0), 0);
  }
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "ring does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  const bool chain = request.kind == PhaseKind::kBroadcast || request.kind == PhaseKind::kReduce;
  PlanBuilder builder(request, chain ? 1 : block_of(request.group_size));
  if (request.kind == PhaseKind::kReduceScatter) build_reduce_scatter(builder, request);
  if (request.kind == PhaseKind::kAllGather) build_all_gather(builder, request);
  if (request.kind == PhaseKind::kAllReduce) build_all_reduce(builder, request);
  if (request.kind == PhaseKind::kBroadcast) build_broadcast(builder, request);
  if (request.kind == PhaseKind::kReduce) build_reduce(builder, request);
  return std::move(builder).finish();
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  const uint32_t chain = std::min(2u, n - 1);  // messages of a rank between two others
  if (kind == PhaseKind::kBroadcast) return {.steps = n - 1, .sent_num = 1, .messages = chain};
  if (kind == PhaseKind::kReduce) return {.steps = n - 1, .sent_num = 1, .reduced_num = 1, .messages = chain};
  const uint32_t rounds = kind == PhaseKind::kAllReduce ? 2 * (n - 1) : n - 1;
  const bool reduces = kind != PhaseKind::kAllGather;
  return {.steps = rounds,
          .sent_num = rounds,
          .sent_den = n,
          .reduced_num = reduces ? n - 1 : 0u,
          .reduced_den = reduces ? n : 1u,
          .messages = 2 * rounds};
}

// Some rank does not pass on the shortest block, and passes on all others.
BlockLoad load(PhaseKind kind, const BlockLengths& lengths) {
  uint64_t shortest = lengths.of(0);
  for (int32_t rank = 1; rank < lengths.ranks(); ++rank) shortest = std::min(shortest, lengths.of(rank));
  const uint64_t passed_on = lengths.total() - shortest;
  return {passed_on, kind == PhaseKind::kReduceScatter ? passed_on : 0};
}

}  // namespace
}  // namespace ring

const Algorithm kRing{"ring",       "neighbours in a ring; least data, steps grow with the group",
                      ring::serves, ring::build,
                      ring::cost,   nullptr,
                      ring::load};

const Algorithm kChain{"chain", "pipelined chain from or to the root; the same plans as ring's", ring::chain_serves,
                       ring::build, ring::cost};

}  // namespace trestle
