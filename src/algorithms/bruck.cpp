// bruck: all-to-all in ceil(log2 n) rounds, for any n. In round k a rank sends to the rank 2^k further.
//
//   The block for the rank at distance j goes, for each bit k of j, 2^k ranks further in round k, packed with all
//   others that do. 4 ranks, rank 0: round 0 sends j = 1, 3 to rank 1; round 1 sends j = 2 and what came with j = 3 to
//   rank 2.
//
// Cost: every block moves once per bit of its distance, about log2(n)/2 times as much data as direct sends, in
// ceil(log2 n) messages each way instead of n-1: for small data. What is kept for later rounds stays where it was
// received and is packed with copies, which the cost leaves out as it does the copies of all rows: they are of the data
// sent, at memory speed. Steps: fewer than rounds where the last round needs nothing that came late (5, 9, ... ranks).
// Scratch: up to n/2 blocks per round, and n/2 to pack in.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport message-passing
// systems, IEEE TPDS 8 (1997), section 3 (index, radix 2).
#include <algorithm>
#include <bit>
#include <utility>

#include "algorithms/rows.h"
#include "base/check.h"

namespace trestle {

namespace {

bool serves(PhaseKind kind, int32_t group_size) {
  return group_size >= 1 && kind == PhaseKind::kAllToAll;
}

uint32_t rounds_of(uint32_t n) {
  return static_cast<uint32_t>(std::bit_width(n - 1));
}

// Where the block of every distance is during an all-to-all.
class Places {
 public:
  explicit Places(const PlanRequest& request) {
    for (int32_t j = 0; j < request.group_size; ++j) places_.push_back(input(block_of(neighbour(request, j))));
  }

  BlockRange at(uint32_t j) const { return places_[j]; }
  void put(uint32_t j, BlockRange where) { places_[j] = where; }
  // The blocks of these distances as one range, packed at `packed` unless they lie so already.
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
  // How many distances from the i-th on lie one behind the other.
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
  // Last, because in place the output is the input, which by now is in use no more.
  for (uint32_t j = 0; j < n; ++j) {
    builder.copy(output(block_of(neighbour(request, -static_cast<int32_t>(j)))), places.at(j), 0);
  }
}

Plan build(const PlanRequest& request) {
  CHECK(serves(request.kind, request.group_size), "bruck does not serve this phase");
  if (request.group_size == 1) return build_alone(request);
  PlanBuilder builder(request, block_of(request.group_size));
  build_all_to_all(builder, request);
  return std::move(builder).finish();
}

// A round's message is one later than the latest round whose blocks it has: that of distance j comes in the round of
// each of its bits.
uint32_t steps_of(uint32_t n) {
  uint32_t longest = 0;
  std::vector<uint32_t> by_round;
  for (uint32_t round = 0; round < rounds_of(n); ++round) {
    const uint32_t last = std::min((1u << round) - 1, n - 1 - (1u << round));  // the most that earlier rounds moved
    const uint32_t before = last == 0 ? 0 : by_round[static_cast<size_t>(std::bit_width(last)) - 1];
    by_round.push_back(before + 1);
    longest = std::max(longest, before + 1);
  }
  return longest;
}

AlgorithmCost cost(PhaseKind, int32_t group_size) {
  if (group_size == 1) return {};
  const auto n = static_cast<uint32_t>(group_size);
  AlgorithmCost cost{.steps = steps_of(n), .sent_den = n, .messages = 2 * rounds_of(n), .converges = n > 2};
  for (uint32_t j = 1; j < n; ++j) cost.sent_num += static_cast<uint64_t>(std::popcount(j));
  return cost;
}

}  // namespace

const Algorithm kBruck{"bruck", "all-to-all in log2(n) rounds; few messages, for small data", serves, build, cost};

}  // namespace trestle
