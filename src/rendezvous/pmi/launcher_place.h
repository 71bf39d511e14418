// Where the processes of a launcher with a key-value space (PMI, PMIx) meet, if nothing else says so.
//
// Rank 0 of the space picks an address of its host and a free port, and makes a secret; all get these through the
// launcher, once per process. So the secret of the job is as private as the launcher's own connections: it is in the
// memory of the launcher's processes and on whatever wire connects them. TRESTLE_SECRET, where set, is used instead.
#pragma once

#include "base/result.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/unique_id.h"
#include "transport/socket/socket.h"

namespace trestle {

// Of the configuration: launcher.space, interfaces, family, port_range. Blocks until all processes of the job have come
// here for the first time; later calls return the same place at once, and after a failure an error. A forked child of
// one that was here is refused: the launcher knows its parent. Any thread.
Result<UniqueId> launcher_place(const BootstrapConfig& config, const WaitLimit& limit);

}  // namespace trestle
