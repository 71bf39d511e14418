// Bodies that wait for each other, run at the same time: the joins of several ranks of one process.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace trestle {

// Runs body(0) on the calling thread and the others on a thread each; returns when all have ended, with the first
// error in their order. All or none: where the system refuses a thread none of them begins, and `ready` is not called
// either; otherwise it is called once, here, before any of them begins. An exception of a body leaves here, on the
// calling thread.
Status run_together(
    size_t count, const std::function<Status(size_t)>& body, const std::function<void()>& ready = [] {});

}  // namespace trestle
