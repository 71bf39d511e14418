// Measures what all-reduces and their halves cost on a communicator, and by how much copies lengthen messages in a row.
//
// Collective; used by the executor's thread while nothing else is on the communicator.
#pragma once

#include "gradient/executor/agreement.h"
#include "gradient/workload.h"

namespace trestle {

// Seven sizes from 1 KiB to 4 MiB, several rounds each; of these the median, averaged over the ranks. So all ranks get
// the same numbers. If one rank lacks memory for it, no rank measures. Errors: the communicator's, trestleMemAlloc's.
Result<GradientLink> measure_link(trestleComm_t comm, const RankAgreement& agreement);

}  // namespace trestle
