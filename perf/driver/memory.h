// How much memory the buffers of the ranks on this host may take.
#pragma once

#include <cstddef>

namespace trestle::perf {

// Bytes that are free on this host: what the kernel says is available, or the control group's rest if that is less.
size_t available_memory_bytes();
// Processes of this job on this host, as the launcher says; `processes` (all) where it does not.
int local_processes(int processes);

}  // namespace trestle::perf
