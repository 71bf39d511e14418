// Waits for streams and events. Any thread. Used by src/api only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "comm/communicator/communicator.h"

namespace trestle {

// For waits: kInvalidUsage if the awaited object has `calls` in an open group of this thread, which have not begun.
Status check_begun(const char* function, const char* what, size_t calls);

// A round of progress for a thread that has asked whether the recording is complete.
void test(const Recording& recording);
Status drive_until(const std::function<bool()>& done, const std::shared_ptr<Stream>& stream);

}  // namespace trestle
