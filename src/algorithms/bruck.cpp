// bruck: all-gather and all-to-all in ceil(log2 n) rounds, for any n. In round k a rank deals with the ranks 2^k away.
//
//   all-gather, 5 ranks, rank 0 (it has the blocks 0, then 0 1, then 0 1 2 3, then all):
//     round 0   0 --0--> 4     gets 1 from 1
//     round 1   0 --0 1--> 3   gets 2 3 from 2
//     round 2   0 --0--> 1     gets 4 from 4
//   all-to-all: in round k a rank sends, packed into one message, all blocks whose distance j to their receiver has bit
//   k set; they move 2^k ranks. 4 ranks, rank 0: round 0 sends j = 1, 3 to rank 1; round 1 sends j = 2 and the block
//   received with j = 3 to rank 2.
//
// All-gather: blocks go directly to their place in the output, so there is no rotation. Blocks that run past the last
// rank are a message of their own. (n-1)/n of the data, the least possible. All-to-all: every block moves once per set
// bit of its distance. That is about log2(n)/2 times as much data as direct sends, in ceil(log2 n) messages each way
// instead of n-1: for small data. Blocks kept for later rounds stay where they were received and are packed with
// copies. The cost omits copies, as it does for all algorithms: they copy only the data sent, at memory speed.
//
// Steps: fewer than rounds if the last round needs nothing that came late (5, 9, ... ranks). Scratch: all-gather none;
// all-to-all up to n/2 blocks per round, and n/2 for packing.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport message-passing
// systems, IEEE TPDS 8 (1997), sections 3 (index, radix 2) and 4 (concatenation).
#include <algorithm>
#include <bit>
#include <utility>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace bruck {
namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && (kind == PhaseKind::kAllGather || kind == PhaseKind::kAllToAll);
}

uint32_t rounds_of(uint32_t n) {
  return static_cast<uint32_t>(std::bit_width(n - 1));
}

// Blocks first, first+1, ... of a ring of n, as at most two ranges that do not wrap. The second is empty or starts at
// 0.
struct Wrapped {
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t rest = 0;
  uint32_t messages() const { return rest > 0 ? 2 : 1; }
};

Wrapped wrapped(uint32_t first, uint32_t count, uint32_t n) {
  const uint32_t straight = std::min(count, n - first);
  return {first, straight, count - straight};
}

// Number of blocks that a rank passes on in a round of an all-gather.
uint32_t gathered(uint32_t round, uint32_t n) {
  return std::min(1u << round, n - (1u << round));
}

void build_all_gather(PlanBuilder& builder, const PlanRequest& request) {
  const auto n = static_cast<uint32_t>(request.group_size);
  const uint32_t mine = block_of(request.me);
  builder.copy(output(mine), input(0), mine);
  for (uint32_t round = 0; round < rounds_of(n); ++round) {
    const auto distance = static_cast<int32_t>(1u << round);
    const int32_t to = neighbour(request, -distance);
    const int32_t from = neighbour(request, distance);
    const Wrapped sent = wrapped(mine, gathered(round, n), n);
    // A single block is this rank's own: it need not wait for its copy.
    builder.send(to, sent.count == 1 ? input(0) : output(sent.first, sent.count), sent.first);
    if (sent.rest > 0) builder.send(to, output(0, sent.rest), 0);
    const Wrapped taken = wrapped(block_of(from), gathered(round, n), n);
    builder.recv(from, output(taken.first, taken.count), taken.first);
    if (taken.rest > 0) builder.recv(from, output(0, taken.rest), 0);
  }
}

// Where the block of each distance is during an all-to-all.
class Places {
 public:
  explicit Places(const PlanRequest& request) {
    for (int32_t j = 0; j < request.group_size; ++j) places_.push_back(input(block_of(neighbour(request, j))));
  }

  BlockRange at(uint32_t j) const { return places_[j]; }
  void put(uint32_t j, BlockRange where) { places_[j] = where; }
  // The blocks of these distances as one range, packed at `packed` unless they are contiguous already.
  BlockRange pack(PlanBuilder& builder, const std::vector<uint32_t>& distances, uint32_t packed) const {
    const auto count = static_cast<uint32_t>(distances.size());
    const uint32_t first = run(distances, 0);
    if (first == count) return {at(distances[0]).space, at(distances[0]).first, count};
    for (uint32_t i = 0; i < count;) {
      const uint32_t length = run(distances, i);
      const BlockRange source = at(distances[i]);
      builder.copy(scratch(packed + i, length), {source.space, source.first, length}, 0);
      i += length;
    }
    return scratch(packed, count);
  }

 private:
  // How many blocks are contiguous from the i-th distance on.
  uint32_t run(const std::vector<uint32_t>& distances, uint32_t i) const {
    const BlockRange first = at(distances[i]);
    uint32_t length = 1;
    while (i + length < distances.size() &&
           at(distances[i + length]) == BlockRange{first.space, first.first + length, 1}) {
      ++length;
    }
    return length;
  }

  std::vector<BlockRange> places_;
};

std::vector<uint32_t> distances_of(uint32_t round, uint32_t n) {
  std::vector<uint32_t> distances;
  for (uint32_t j = 1; j < n; ++j) {
    if ((j >> round & 1) != 0) distances.push_back(j);
  }
  return distances;
}

void build_all_to_all(PlanBuilder& builder, const PlanRequest& request) {
  const auto n = static_cast<uint32_t>(request.group_size);
  Places places(request);
  uint32_t used = n / 2;  // the first blocks of the scratch are for packing
  for (uint32_t round = 0; round < rounds_of(n); ++round) {
    const auto distance = static_cast<int32_t>(1u << round);
    const std::vector<uint32_t> distances = distances_of(round, n);
    const auto count = static_cast<uint32_t>(distances.size());
    builder.send(neighbour(request, distance), places.pack(builder, distances, 0), 0);
    builder.recv(neighbour(request, -distance), scratch(used, count), 0);
    for (uint32_t i = 0; i < count; ++i) places.put(distances[i], scratch(used + i));
    used += count;
  }
  // Copied last: in place the output is the input, which is no longer needed by now.
  for (uint32_t j = 0; j < n; ++j) {
    builder.copy(output(block_of(neighbour(request, -static_cast<int32_t>(j)))), places.at(j), 0);
  }
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "bruck does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, block_of(request.group_size));
  if (request.kind == PhaseKind::kAllGather) {
    build_all_gather(builder, request);
  } else {
    build_all_to_all(builder, request);
  }
  return std::move(builder).finish();
}

// A round's message depends on the latest round that brought any of its blocks. In an all-gather the blocks at distance
// 2^i .. 2^(i+1)-1 arrive in round i; in an all-to-all the block of distance j arrives in the round of each of its set
// bits.
uint32_t steps_of(PhaseKind kind, uint32_t n) {
  uint32_t longest = 0;
  std::vector<uint32_t> by_round;
  for (uint32_t round = 0; round < rounds_of(n); ++round) {
    uint32_t last = 0;  // the largest distance that earlier rounds brought, below 2^round
    if (kind == PhaseKind::kAllGather) {
      last = gathered(round, n) - 1;
    } else {
      last = std::min((1u << round) - 1, n - 1 - (1u << round));
    }
    const uint32_t before = last == 0 ? 0 : by_round[static_cast<size_t>(std::bit_width(last)) - 1];
    by_round.push_back(before + 1);
    longest = std::max(longest, before + 1);
  }
  return longest;
}

AlgorithmCost cost(PhaseKind kind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  AlgorithmCost cost{.steps = steps_of(kind, n), .sent_den = n, .converges = n > 2};
  if (kind == PhaseKind::kAllToAll) {
    cost.messages = 2 * rounds_of(n);
    for (uint32_t j = 1; j < n; ++j) cost.sent_num += static_cast<uint64_t>(std::popcount(j));
    return cost;
  }
  cost.sent_num = n - 1;
  for (uint32_t rank = 0; rank < n; ++rank) {
    uint32_t messages = 0;
    for (uint32_t round = 0; round < rounds_of(n); ++round) {
      const uint32_t count = gathered(round, n);
      messages += wrapped(rank, count, n).messages() + wrapped((rank + (1u << round)) % n, count, n).messages();
    }
    cost.messages = std::max(cost.messages, messages);
  }
  return cost;
}

uint64_t length_of(const Wrapped& blocks, const BlockLengths& lengths) {
  const auto first = static_cast<int32_t>(blocks.first);
  return lengths.range(first, first + static_cast<int32_t>(blocks.count)) +
         lengths.range(0, static_cast<int32_t>(blocks.rest));
}

BlockLoad load(PhaseKind, const BlockLengths& lengths) {
  const auto n = static_cast<uint32_t>(lengths.ranks());
  BlockLoad busiest;
  for (uint32_t rank = 0; rank < n; ++rank) {
    uint64_t sent = 0;
    uint64_t taken = 0;
    for (uint32_t round = 0; round < rounds_of(n); ++round) {
      const uint32_t count = gathered(round, n);
      sent += length_of(wrapped(rank, count, n), lengths);
      taken += length_of(wrapped((rank + (1u << round)) % n, count, n), lengths);
    }
    busiest.sent = std::max({busiest.sent, sent, taken});
  }
  return busiest;
}

}  // namespace
}  // namespace bruck

const Algorithm kBruck{"bruck",       "all-gather and all-to-all in log2(n) rounds; few messages, for small data",
                       bruck::serves, bruck::build,
                       bruck::cost,   nullptr,
                       bruck::load};

}  // namespace trestle
