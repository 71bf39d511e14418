// The error that other ranks get when this rank stops creating a communicator without a failure: its user aborts it, or
// its process exits.
//
// Any thread. A forked child does not exit with its parent.
#pragma once

#include <string>

#include "base/result.h"

namespace trestle {

// This process ends by exit() or by returning from main. It creates no more communicators.
void begin_exit();
bool exits();

// "rank 3 (host a, pid 12) aborted the communicator", or that it exited.
Error giving_up(const std::string& who);

}  // namespace trestle
