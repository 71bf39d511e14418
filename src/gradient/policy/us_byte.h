// Messages of unequal numbers of parts: a greedy stand-in for US-Byte. Pure, any thread.
//
// US-Byte (Gao et al., IEEE TPDS 2023) cuts and merges tensors into blocks of unequal sizes. Its text was not at hand.
// So this is a greedy that looks one message ahead. Whenever the channel is free, it tries 1, 2, 4, ... consecutive
// ready parts from the lowest ready tensor on, and all of them. It sends the number with which the next forward pass
// would end first if each of the other parts travelled alone. Of equal ends it takes the fewest parts.
#pragma once

#include "gradient/plan.h"

namespace trestle {

inline constexpr uint64_t kMostTriedParts = 2048;  // of a workload: the greedy's time grows with their square

// copy_per_byte_s: as in GradientLink. Errors (kInvalidArgument): more than kMostTriedParts.
Result<GradientPlan> plan_us_byte(const GradientWorkload& workload, const MessageCost& cost, uint64_t part_bytes,
                                  double copy_per_byte_s = 0);

}  // namespace trestle
