// Runs functions that wait for each other at the same time: the joins of several ranks of one process.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace trestle {

// Runs body(0) on the calling thread and each other one on a thread of its own. Returns when all have ended, with the
// first error in their order. All or none: if a thread cannot be started, none of them begins and `ready` is not
// called. Otherwise `ready` is called once, on this thread, before any of them begins.
Status run_together(
    size_t count, const std::function<Status(size_t)>& body, const std::function<void()>& ready = [] {});

}  // namespace trestle
