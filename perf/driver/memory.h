// How much memory the buffers of the ranks on this host may use.
#pragma once

#include <cstddef>

namespace trestle::perf {

// Free bytes on this host: what the kernel says is available, or what the control group has left if that is less.
size_t available_memory_bytes();
// Processes of this job on this host, as the launcher says; `processes` (all of them) if it does not.
int local_processes(int processes);

}  // namespace trestle::perf
