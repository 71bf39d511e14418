// NCCL's configuration of a communicator as Trestle's.
#pragma once

#include "bindings/nccl/interface.h"

namespace trestle::nccl {

// Reads the caller's struct, which is not NULL, as far as its size and version say. `blocking` and `commName` count.
// `netName` must name what Trestle has. Fields about kernels, networks and sharing have no effect, and a line at INFO
// names those that are set. *to starts as TRESTLE_CONFIG_INITIALIZER; its strings are the caller's. Any thread.
Result read_config(const char* function, const Config* from, trestleConfig_t* to);

}  // namespace trestle::nccl
