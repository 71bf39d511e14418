#include "gradient/deft/partition.h"

#include <algorithm>

namespace trestle {

Result<std::vector<DeftItem>> deft_partition(const DeftSystem& system) {
  TRY(check_deft(system));
  uint64_t slowest = 0;
  for (const DeftLink& link : system.links) slowest = std::max<uint64_t>(slowest, link.slowdown_permille);
  const uint64_t forward_ns = forward_us(system.buckets) * 1000;
  std::vector<DeftItem> items;
  for (uint32_t bucket = 0; bucket < system.buckets.size(); ++bucket) {
    const uint64_t comm_us = system.buckets[bucket].comm_us;
    const uint64_t parts = comm_us * slowest / forward_ns + 1;  // strictly less, so one more than the quotient
    if (items.size() + parts > kMostDeftItems) {
      return Error{Code::kInvalidArgument, "the forward pass is so short that the buckets fall into too many parts"};
    }
    for (uint32_t part = 0; part < parts; ++part) {
      items.push_back({bucket, part, static_cast<uint32_t>(parts), (comm_us + parts - 1) / parts});
    }
  }
  return items;
}

}  // namespace trestle
