// DeFT's choice of gradients that travel in their own backward pass: knapsacks with release times. Pure, any thread.
//
// The paper's Algorithm 1 (RecursiveKnapsack) is vacuous as printed: every set that is feasible for a recursive call is
// feasible for the first one, so the result is the plain knapsack and may hold gradients that are not ready. Here an
// item may only use the time after its own gradient.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradient/deft/place.h"

namespace trestle {

// An item as one link sees it, in link 0's time.
struct DeftCandidate {
  uint64_t comm_us = 0;
  uint64_t room_us = 0;  // what the link carries from its release to the end of the pass
};

// The positions of the candidates with the largest sum, so that for each one the sum of all that are not released
// before it is within its room, and the whole within the capacity. Candidates come latest release first (rooms do not
// fall). Exact: a dynamic programme over reachable sums; of equal sums it takes the earlier candidates. Memory: two
// bytes for each microsecond of the capacity or of all candidates, whichever is less.
std::vector<uint32_t> deft_select_one(std::span<const DeftCandidate> candidates, uint64_t capacity_us);

// Chooses among all items for all links, the slowest link first. left_us: per link, its remaining capacity. Each
// link's items come in order of release, so that a link that sends them in this order meets every room.
DeftSends deft_select(const DeftSystem& system, std::span<const DeftItem> items, std::span<const uint64_t> left_us);

}  // namespace trestle
