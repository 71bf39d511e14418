// DeFT's knapsack with release times: against brute force, and what the paper's Algorithm 1 does instead.
#include <gtest/gtest.h>

#include <algorithm>

#include "gradient/deft/select.h"
#include "unit/gradient/deft_systems.h"

namespace trestle {
namespace {

bool is_feasible(const std::vector<DeftCandidate>& candidates, uint32_t set, uint64_t capacity) {
  uint64_t sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if ((set >> i & 1) == 0) continue;
    sum += candidates[i].comm_us;
    if (sum > candidates[i].room_us) return false;
  }
  return sum <= capacity;
}

uint64_t sum_of(const std::vector<DeftCandidate>& candidates, uint32_t set) {
  uint64_t sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) sum += (set >> i & 1) != 0 ? candidates[i].comm_us : 0;
  return sum;
}

uint64_t brute_force(const std::vector<DeftCandidate>& candidates, uint64_t capacity) {
  uint64_t best = 0;
  for (uint32_t set = 0; set < uint32_t{1} << candidates.size(); ++set) {
    if (is_feasible(candidates, set, capacity)) best = std::max(best, sum_of(candidates, set));
  }
  return best;
}

std::vector<DeftCandidate> random_candidates(Rng& rng) {
  std::vector<DeftCandidate> candidates;
  const uint64_t count = rng.below(11);
  const uint64_t scale = 1 + rng.below(300);
  uint64_t room = 0;
  for (uint64_t i = 0; i < count; ++i) {
    candidates.push_back({rng.below(scale), room});
    if (rng.below(3) != 0) room += rng.below(scale);
  }
  return candidates;
}

TEST(DeftSelect, IsAsGoodAsBruteForce) {
  Rng rng(2);
  for (int round = 0; round < 4000; ++round) {
    const std::vector<DeftCandidate> candidates = random_candidates(rng);
    const uint64_t capacity = rng.below(1200);
    const std::vector<uint32_t> chosen = deft_select_one(candidates, capacity);
    uint32_t set = 0;
    for (const uint32_t i : chosen) set |= uint32_t{1} << i;
    ASSERT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    ASSERT_EQ(static_cast<size_t>(__builtin_popcount(set)), chosen.size()) << "used twice";
    ASSERT_TRUE(is_feasible(candidates, set, capacity)) << round;
    ASSERT_EQ(sum_of(candidates, set), brute_force(candidates, capacity)) << round;
  }
}

TEST(DeftSelect, MeetsEveryReleaseOnEveryLink) {
  Rng rng(3);
  for (int round = 0; round < 500; ++round) {
    const DeftSystem system = random_deft_system(rng);
    const std::vector<DeftItem> items = expect_value(deft_partition(system));
    std::vector<uint64_t> left;
    for (const DeftLink& link : system.links) left.push_back(link.carries_us(backward_us(system.buckets)));
    const DeftSends sends = deft_select(system, items, left);
    std::vector<bool> seen(items.size(), false);
    for (size_t link = 0; link < sends.size(); ++link) {
      uint64_t free_ns = 0;
      for (const uint32_t id : sends[link]) {
        EXPECT_FALSE(seen[id]);
        seen[id] = true;
        EXPECT_NE(items[id].bucket, 0u) << "the first bucket's gradients are ready when the pass is over";
        const uint64_t ready = backward_us(system.buckets) - room_us(system.buckets, items[id].bucket);
        free_ns = std::max(free_ns, ready * 1000) + items[id].comm_us * system.links[link].slowdown_permille;
      }
      EXPECT_LE(free_ns, backward_us(system.buckets) * 1000);
    }
  }
}

TEST(DeftSelect, HasNothingToSelect) {
  EXPECT_TRUE(deft_select_one({}, 100).empty());
  EXPECT_TRUE(deft_select_one(std::vector<DeftCandidate>{{5, 100}}, 4).empty());
  EXPECT_TRUE(deft_select_one(std::vector<DeftCandidate>{{5, 4}}, 100).empty());
  EXPECT_TRUE(deft_select_one(std::vector<DeftCandidate>{{0, 0}}, 0).empty());
}

// Positions of words and bits: sums around multiples of 64.
TEST(DeftSelect, KnowsSumsAtTheEdgesOfWords) {
  for (uint64_t room = 60; room < 200; ++room) {
    for (uint64_t comm = 1; comm < 70; ++comm) {
      const std::vector<DeftCandidate> candidates(4, DeftCandidate{comm, room});
      const std::vector<uint32_t> chosen = deft_select_one(candidates, 1000);
      ASSERT_EQ(chosen.size(), std::min<uint64_t>(4, room / comm)) << comm << " in " << room;
    }
  }
}

// ---- the paper's Algorithm 1, as printed

// The largest sum of items within the capacity.
uint64_t plain_knapsack(const std::vector<DeftCandidate>& items, uint64_t capacity) {
  uint64_t best = 0;
  for (uint32_t set = 0; set < uint32_t{1} << items.size(); ++set) {
    if (const uint64_t sum = sum_of(items, set); sum <= capacity) best = std::max(best, sum);
  }
  return best;
}

// order1 is the knapsack of all; order2 leaves out the bucket whose gradient comes first and the time before the next
// one. The better of both is the result.
uint64_t recursive_knapsack(std::vector<DeftCandidate> items, std::vector<uint64_t> backward, uint64_t capacity) {
  const uint64_t order1 = plain_knapsack(items, capacity);
  if (items.empty()) return order1;
  const uint64_t passed = std::min(capacity, backward.back());
  items.pop_back();
  backward.pop_back();
  return std::max(order1, recursive_knapsack(items, backward, capacity - passed));
}

TEST(DeftAlgorithm1, IsThePlainKnapsackAndIgnoresReleases) {
  Rng rng(4);
  int not_ready = 0;
  for (int round = 0; round < 250; ++round) {
    std::vector<DeftCandidate> items;
    std::vector<uint64_t> backward;
    uint64_t room = 0;
    for (uint64_t i = 1 + rng.below(8); i > 0; --i) {
      items.push_back({1 + rng.below(50), room});
      backward.push_back(1 + rng.below(50));
      room += backward.back();
    }
    const uint64_t result = recursive_knapsack(items, backward, room);
    EXPECT_EQ(result, plain_knapsack(items, room));
    not_ready += result > brute_force(items, room);
  }
  EXPECT_GT(not_ready, 200) << "its sums need gradients that are not ready";
}

}  // namespace
}  // namespace trestle
