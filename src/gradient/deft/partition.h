// DeFT's items: buckets cut so that each message fits into any link's forward pass. Pure, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "gradient/deft_buckets.h"

namespace trestle {

// A part of a bucket: what is placed and sent as one. Items are numbered in the order of their buckets.
struct DeftItem {
  uint32_t bucket = 0;
  uint32_t part = 0;  // of `parts` equal ones
  uint32_t parts = 1;
  uint64_t comm_us = 0;  // on link 0, rounded up
  bool operator==(const DeftItem&) const = default;
};

inline constexpr size_t kMostDeftItems = 4096;

// Cuts each bucket into the least number of equal parts that take less than the forward pass on the slowest link
// (section 3.3). So a message is never longer than a knapsack, and each pass places at least one.
// Errors: those of check_deft; more than kMostDeftItems parts (kInvalidArgument).
Result<std::vector<DeftItem>> deft_partition(const DeftSystem& system);

}  // namespace trestle
