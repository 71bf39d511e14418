// Where the processes of a launcher with a key-value space (PMI, PMIx) meet, if nothing else says so.
//
// Rank 0 of the space picks an address of its host and a free port, and makes a secret. All processes get these through
// the launcher, once per process. So the job's secret is as private as the launcher's own connections: it is in the
// memory of the launcher's processes and on the wire between them. TRESTLE_SECRET, where set, is used instead.
#pragma once

#include "base/result.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/unique_id.h"
#include "transport/socket/socket.h"

namespace trestle {

// Uses launcher.space, interfaces, family and port_range of the configuration. The first call blocks until all
// processes of the job have made it. Later calls return the same place at once, or an error after a failure. A forked
// child of a process that has called this gets an error: the launcher knows only its parent. Any thread.
Result<UniqueId> launcher_place(const BootstrapConfig& config, const WaitLimit& limit);

}  // namespace trestle
