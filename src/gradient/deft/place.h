// DeFT's greedy placement: messages that are ready go to several links within a pass. Pure, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gradient/deft/partition.h"

namespace trestle {

// Per link the items it sends, in order.
using DeftSends = std::vector<std::vector<uint32_t>>;

struct DeftPlaced {
  DeftSends sends;
  std::vector<uint64_t> left_us;  // per link, of its capacity
};

// Places the items named by `ids`, longest first, each on the link of the least capacity that has room (section 3.3:
// the smallest knapsack first). Ties go to the higher item, whose layer is nearer to the output, and to the lower link.
// Items that fit nowhere are left out. capacities_us: per link, in link 0's time.
DeftPlaced deft_place(std::span<const DeftItem> items, std::span<const uint32_t> ids,
                      std::span<const uint64_t> capacities_us);

}  // namespace trestle
