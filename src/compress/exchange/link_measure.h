// Measures what sparse exchanges cost on a communicator. Collective.
#pragma once

#include <vector>

#include "compress/exchange/rank_calls.h"
#include "compress/link_estimate.h"

namespace trestle {

// Measures six sizes from 1 KiB to 1 MiB. Of each size: a broadcast followed by an all-reduce over a ring, and an
// all-gather whose result has that size. All ranks begin each of the five rounds together. The result is the least
// of the ranks' medians over these rounds. All ranks get the same numbers. If one rank lacks memory, no rank measures.
// A communicator of one rank measures nothing. Errors: the communicator's, trestleMemAlloc's.
Result<std::vector<TimedMessage>> measure_link(const RankCalls& calls, const char* function);

}  // namespace trestle
