// Measures what all-reduces and their halves cost on a communicator, and by how much copies lengthen messages in a row.
//
// Collective; used by the executor's thread while nothing else is on the communicator.
#pragma once

#include "gradient/executor/agreement.h"
#include "gradient/workload.h"

namespace trestle {

// Measures seven sizes from 1 KiB to 4 MiB, several rounds each. Takes the median of the rounds, and the mean over the
// ranks, so all ranks get the same numbers. If one rank lacks memory, no rank measures. Errors: the communicator's,
// trestleMemAlloc's.
Result<GradientLink> measure_link(trestleComm_t comm, const RankAgreement& agreement);

}  // namespace trestle
