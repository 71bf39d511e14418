// direct: every rank exchanges directly with every other one; one step, for fully connected links and small data.
//
//   4 ranks, seen from rank 0:
//
//        1 <--> 0 <--> 2         reduce-scatter     sends block p to p; adds its own and three messages in one pass
//               ^                all-gather         sends its block to all, receives theirs
//               |                all-reduce         sends its whole input to all, adds all inputs
//               v                all-to-all         sends block p to p, receives from p
//               3                reduce, broadcast  all send to the root; the root sends to all
//                                gather, scatter    the same, a block of each
//                                send, recv         one message in a group of two
//
// Cost: 1 step, n-1 messages. Reduce-scatter, all-gather, all-to-all, gather and scatter move (n-1)/n of the data, the
// least possible. All-reduce, reduce and broadcast move n-1 times the data at the busiest rank. Peers are visited in
// the order me+1, me+2, ..., so that no rank is the first target of all others. Order of summation: rank order, so
// every rank computes the same bits. Every block goes directly from its owner to its receiver. So this algorithm serves
// the kinds whose block lengths only these two ranks know.
//
// In place, a rank may not overwrite a block before it has left. Two ranks that both wait for that would wait for each
// other. All-reduce therefore sums into one scratch block and copies. In all-to-all one rank of each pair sends from a
// staged copy (at most n/2 blocks of scratch): the peer's block can then arrive at once, and the other rank receives
// when its own block has left.
//
// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19 (2005), section
// 4.3 (pairwise and spread-out exchanges).
#include <algorithm>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace direct {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  if (kind == PhaseKind::kSend || kind == PhaseKind::kRecv) return group_size == 2;
  return group_size >= 1 && kind != PhaseKind::kBarrier;  // a barrier would be an all-reduce here
}

// My `mine` and one message from every other rank, in rank order.
std::vector<Operand> everyone(const PlanRequest& request, BlockRange mine) {
  std::vector<Operand> sources;
  for (int32_t rank = 0; rank < request.group_size; ++rank) {
    sources.push_back(rank == request.me ? Operand(mine) : from(rank));
  }
  return sources;
}

void build_reduce_scatter(PlanBuilder& builder, const PlanRequest& request) {
  for (int32_t d = 1; d < request.group_size; ++d) {
    const int32_t to = neighbour(request, d);
    builder.send(to, input(block_of(to)), block_of(to));
  }
  const uint32_t mine = block_of(request.me);
  builder.reduce(output(0), everyone(request, input(mine)), mine);
}

void build_all_gather(PlanBuilder& builder, const PlanRequest& request) {
  const uint32_t mine = block_of(request.me);
  for (int32_t d = 1; d < request.group_size; ++d) builder.send(neighbour(request, d), input(0), mine);
  builder.copy(output(mine), input(0), mine);
  for (int32_t d = 1; d < request.group_size; ++d) {
    const int32_t peer = neighbour(request, -d);
    builder.recv(peer, output(block_of(peer)), block_of(peer));
  }
}

void build_all_reduce(PlanBuilder& builder, const PlanRequest& request) {
  for (int32_t d = 1; d < request.group_size; ++d) builder.send(neighbour(request, d), input(0), 0);
  if (!request.in_place) {
    builder.reduce(output(0), everyone(request, input(0)), 0);
    return;
  }
  builder.reduce(scratch(0), everyone(request, input(0)), 0);
  builder.copy(output(0), scratch(0), 0);
}

void build_reduce(PlanBuilder& builder, const PlanRequest& request) {
  if (request.me == request.root) {
    builder.reduce(output(0), everyone(request, input(0)), 0);
  } else {
    builder.send(request.root, input(0), 0);
  }
}

void build_broadcast(PlanBuilder& builder, const PlanRequest& request) {
  if (request.me != request.root) {
    builder.recv(request.root, output(0), 0);
    return;
  }
  for (int32_t d = 1; d < request.group_size; ++d) builder.send(neighbour(request, d), input(0), 0);
  builder.copy(output(0), input(0), 0);
}

void build_all_to_all(PlanBuilder& builder, const PlanRequest& request) {
  const int32_t n = request.group_size;
  uint32_t staged = 0;
  for (int32_t d = 1; d < n; ++d) {
    const int32_t to = neighbour(request, d);
    const uint32_t block = block_of(to);
    const bool stage = request.in_place && (2 * d < n || (2 * d == n && request.me < to));
    if (stage) builder.copy(scratch(staged), input(block), block);
    builder.send(to, stage ? scratch(staged++) : input(block), block);
  }
  const uint32_t mine = block_of(request.me);
  builder.copy(output(mine), input(mine), mine);
  for (int32_t d = 1; d < n; ++d) {
    const int32_t peer = neighbour(request, -d);
    builder.recv(peer, output(block_of(peer)), mine);
  }
}

void build_gather(PlanBuilder& builder, const PlanRequest& request) {
  const uint32_t mine = block_of(request.me);
  if (request.me != request.root) {
    builder.send(request.root, input(0), mine);
    return;
  }
  builder.copy(output(mine), input(0), mine);
  for (int32_t d = 1; d < request.group_size; ++d) {
    const int32_t peer = neighbour(request, d);
    builder.recv(peer, output(block_of(peer)), block_of(peer));
  }
}

void build_scatter(PlanBuilder& builder, const PlanRequest& request) {
  const uint32_t mine = block_of(request.me);
  if (request.me != request.root) {
    builder.recv(request.root, output(0), mine);
    return;
  }
  for (int32_t d = 1; d < request.group_size; ++d) {
    const int32_t peer = neighbour(request, d);
    builder.send(peer, input(block_of(peer)), block_of(peer));
  }
  builder.copy(output(0), input(mine), mine);
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "direct does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, has_block_per_rank(request.kind) ? block_of(request.group_size) : 1);
  switch (with_known_blocks(request.kind)) {
    case PhaseKind::kReduceScatter:
      build_reduce_scatter(builder, request);
      break;
    case PhaseKind::kAllGather:
      build_all_gather(builder, request);
      break;
    case PhaseKind::kAllReduce:
      build_all_reduce(builder, request);
      break;
    case PhaseKind::kReduce:
      build_reduce(builder, request);
      break;
    case PhaseKind::kBroadcast:
      build_broadcast(builder, request);
      break;
    case PhaseKind::kAllToAll:
      build_all_to_all(builder, request);
      break;
    case PhaseKind::kSend:
      CHECK(request.me == 0, "index 0 of a pair sends");
      builder.send(1, input(0), 0);
      break;
    case PhaseKind::kRecv:
      CHECK(request.me == 1, "index 1 of a pair receives");
      builder.recv(0, output(0), 0);
      break;
    case PhaseKind::kGather:
      build_gather(builder, request);
      break;
    case PhaseKind::kScatter:
      build_scatter(builder, request);
      break;
    default:
      break;
  }
  return std::move(builder).finish();
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  const bool converges = n > 2;
  switch (with_known_blocks(kind)) {
    case PhaseKind::kReduceScatter:
      return {.steps = 1,
              .sent_num = n - 1,
              .sent_den = n,
              .reduced_num = n - 1,
              .reduced_den = n,
              .messages = 2 * (n - 1),
              .converges = converges};
    case PhaseKind::kAllGather:
    case PhaseKind::kAllToAll:
      return {.steps = 1, .sent_num = n - 1, .sent_den = n, .messages = 2 * (n - 1), .converges = converges};
    case PhaseKind::kAllReduce:
      return {.steps = 1, .sent_num = n - 1, .reduced_num = n - 1, .messages = 2 * (n - 1), .converges = converges};
    case PhaseKind::kReduce:
      return {.steps = 1, .sent_num = n - 1, .reduced_num = n - 1, .messages = n - 1, .converges = converges};
    case PhaseKind::kBroadcast:
      return {.steps = 1, .sent_num = n - 1, .messages = n - 1};
    case PhaseKind::kSend:
    case PhaseKind::kRecv:
      return {.steps = 1, .sent_num = 1, .messages = 1};
    case PhaseKind::kGather:
      return {.steps = 1, .sent_num = n - 1, .sent_den = n, .messages = n - 1, .converges = converges};
    case PhaseKind::kScatter:
      return {.steps = 1, .sent_num = n - 1, .sent_den = n, .messages = n - 1};
    default:
      return {};
  }
}

BlockLoad load(PhaseKind kind, const BlockLengths& lengths) {
  BlockLoad busiest;
  const auto others = static_cast<uint64_t>(lengths.ranks() - 1);
  for (int32_t rank = 0; rank < lengths.ranks(); ++rank) {
    const uint64_t mine = lengths.of(rank);
    busiest.sent = std::max({busiest.sent, others * mine, lengths.total() - mine});
    if (kind == PhaseKind::kReduceScatter) busiest.reduced = std::max(busiest.reduced, others * mine);
  }
  return busiest;
}

bool in_rank_order(PhaseKind, int32_t) {
  return true;
}

uint32_t all_at_once(PhaseKind, int32_t group_size) {
  return static_cast<uint32_t>(group_size);
}

}  // namespace
}  // namespace direct

const Algorithm kDirect{"direct",       "every rank with every other at once; one step, many messages",
                        direct::serves, direct::build,
                        direct::cost,   direct::in_rank_order,
                        direct::load,   direct::all_at_once};

}  // namespace trestle
