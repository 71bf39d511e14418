// The exchange of pmi_client.h, but over PMIx, the successor of PMI: mpirun of Open MPI 4 and 5, srun --mpi=pmix.
//
// libpmix is loaded when it is needed and not linked: most installations have no such launcher and must not need it.
// Without its headers at configure time this is not built, and reports that. PMIx is begun for the exchange and ended
// after it. If MPI is running, its session is shared (PMIx counts references). If an MPI library is loaded and not
// started, the session stays open until the process ends, because Open MPI's MPI_Init fails after PMIx has ended.
#pragma once

#include <string>

#include "base/result.h"
#include "transport/socket/socket.h"

namespace trestle {

// Success, or kInvalidUsage: not built, or libpmix cannot be loaded here.
Status pmix_probe();

// Collective over all processes of the launcher's job (PMIx: namespace), once per process. Rank 0 publishes `text`; all
// processes get it. Blocks until all have come, or the limit.
Result<std::string> exchange_over_pmix(const std::string& text, const WaitLimit& limit);

}  // namespace trestle
