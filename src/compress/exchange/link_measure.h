// Measures what sparse exchanges cost on a communicator. Collective.
#pragma once

#include <vector>

#include "compress/exchange/rank_calls.h"
#include "compress/link_estimate.h"

namespace trestle {

// Six sizes from 1 KiB to 1 MiB: a broadcast with an all-reduce over a ring, and an all-gather of so much in all. Five
// rounds each, which all ranks begin together; of these the median, of the ranks' medians the least. All ranks get the
// same numbers. If one rank lacks memory, no rank measures. One rank measures nothing. Errors: the communicator's,
// trestleMemAlloc's.
Result<std::vector<TimedMessage>> measure_link(const RankCalls& calls, const char* function);

}  // namespace trestle
