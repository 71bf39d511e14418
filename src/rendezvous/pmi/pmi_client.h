// The client side of PMI-1's wire protocol. MPICH's and Intel MPI's mpirun (Hydra) and srun --mpi=pmi2 let their
// processes exchange short texts with it: lines "cmd=put key=... value=...", each answered by one line.
//
// The connection is PMI_FD, which the process has inherited, or a new one to PMI_PORT. A launcher treats a process that
// begins PMI ("init") and ends without "finalize" as failed and ends the job. After "finalize" PMI_FD is closed for
// good. MPICH's MPI_Init begins PMI on the same PMI_FD. So:
//  * no MPI library in the process: PMI is ended as soon as the exchange is over;
//  * MPI is running: the exchange takes place within MPI's session, which MPI began and will end;
//  * an MPI library is loaded and MPI_Init has not been called: PMI stays open for it. It is ended when the process
//    ends in order, unless MPI_Init was called in between;
//  * MPI_Finalize has been called: PMI_FD is closed, an error.
// An MPI library that is loaded only after an exchange finds PMI closed.
#pragma once

#include <string>

#include "base/config/launcher.h"
#include "base/result.h"
#include "transport/socket/socket.h"

namespace trestle {

// Collective over all processes of the launcher's job, once per process. Rank 0 of the space publishes `text` (which
// has no spaces); all processes get it. Blocks until all have come, or the limit. After a failure PMI cannot be used
// again.
Result<std::string> exchange_over_pmi(const LauncherSpace& space, const std::string& text, const WaitLimit& limit);

}  // namespace trestle
