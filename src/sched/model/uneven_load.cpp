#include "sched/model/uneven_load.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace trestle {
namespace {

// part / whole, at most 1, in lowest terms. Rounded up to 24 bits if these are too large.
void set_fraction(unsigned __int128 part, unsigned __int128 whole, uint64_t& numerator, uint64_t& denominator) {
  static constexpr uint64_t kMost = uint64_t{1} << 24;
  unsigned __int128 a = part;
  unsigned __int128 b = whole;
  while (b != 0) std::swap(a %= b, b);
  if (whole / a <= kMost) {
    numerator = static_cast<uint64_t>(part / a);
    denominator = static_cast<uint64_t>(whole / a);
    return;
  }
  numerator = static_cast<uint64_t>((part * kMost + whole - 1) / whole);
  denominator = kMost;
}

}  // namespace

UnevenLoad::UnevenLoad(const Topology& topology, const BlockBytes& bytes)
    : topology_(topology),
      bytes_(std::ranges::adjacent_find(bytes, std::not_equal_to<>()) == bytes.end() ? BlockBytes{} : bytes),
      total_(std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0})) {
  CHECK(bytes_.empty() || bytes_.size() == static_cast<size_t>(topology.ranks()), "a block for every rank");
}

bool UnevenLoad::concerns(const PhaseChoice& choice) const {
  if (bytes_.empty() || topology_.group_size(choice.dimension) == 1) return false;
  return choice.kind == PhaseKind::kReduceScatter || choice.kind == PhaseKind::kAllGather;
}

std::vector<std::vector<uint64_t>> UnevenLoad::blocks_of_groups(uint8_t dimension, uint32_t fixed) const {
  if (dimension == kFlat) return {bytes_};
  // Ranks with equal coordinates in the split dimensions and in the phase's own dimension share a block.
  std::map<std::vector<int32_t>, std::vector<uint64_t>> groups;
  const auto size = static_cast<size_t>(topology_.group_size(dimension));
  std::vector<int32_t> where(topology_.dimensions.size());
  for (int32_t rank = 0; rank < topology_.ranks(); ++rank) {
    for (uint8_t d = 0; d < where.size(); ++d) where[d] = (fixed >> d & 1) != 0 ? topology_.coordinate(rank, d) : 0;
    std::vector<uint64_t>& blocks = groups.try_emplace(where, size, 0).first->second;
    blocks[static_cast<size_t>(topology_.coordinate(rank, dimension))] += bytes_[static_cast<size_t>(rank)];
  }
  std::vector<std::vector<uint64_t>> all;
  for (auto& group : groups) all.push_back(std::move(group.second));
  return all;
}

BlockLoad UnevenLoad::busiest(const PhaseChoice& choice, uint32_t fixed) const {
  const Algorithm& row = algorithms()[choice.algorithm];
  CHECK(row.load != nullptr, "an algorithm that does not know its load with blocks of unequal lengths");
  BlockLoad most;
  for (const std::vector<uint64_t>& blocks : blocks_of_groups(choice.dimension, fixed)) {
    const BlockLoad load = row.load(choice.kind, BlockLengths(blocks));
    most.sent = std::max(most.sent, load.sent);
    most.reduced = std::max(most.reduced, load.reduced);
  }
  return most;
}

const AlgorithmCost& UnevenLoad::cost(const PhaseChoice& choice, uint32_t fixed) {
  const auto [known, fresh] = costs_.try_emplace({choice.dimension, choice.kind, choice.algorithm, fixed});
  if (!fresh) return known->second;
  AlgorithmCost& cost = known->second;
  cost = algorithms()[choice.algorithm].cost(choice.kind, topology_.group_size(choice.dimension));
  if (total_ == 0) return cost;
  // With equal blocks, the phase's data would be this many times shorter than all the data.
  unsigned __int128 divisor = 1;
  for (uint8_t d = 0; d < topology_.dimensions.size(); ++d) {
    if (choice.dimension != kFlat && (fixed >> d & 1) != 0) divisor *= static_cast<uint64_t>(topology_.group_size(d));
  }
  const BlockLoad load = busiest(choice, fixed);
  set_fraction(divisor * load.sent, total_, cost.sent_num, cost.sent_den);
  set_fraction(divisor * load.reduced, total_, cost.reduced_num, cost.reduced_den);
  return cost;
}

}  // namespace trestle
