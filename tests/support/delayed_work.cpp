// With this file the library does its work on host memory late, as a device would: on a DelayedQueue, after at most
// TESTS_WORK_DELAY_US. Without the variable there is no queue, as in the product.
#include <cstdlib>

#include "comm/setup/wiring.h"
#include "support/delayed_queue.h"

namespace trestle {

Result<std::unique_ptr<WorkQueue>> make_work_queue(int32_t rank) {
  const char* const most_us = std::getenv("TESTS_WORK_DELAY_US");
  if (most_us == nullptr) return {nullptr};
  std::unique_ptr<WorkQueue> queue = TRY(DelayedQueue::create(static_cast<uint64_t>(rank), std::atoll(most_us) * 1000));
  return queue;
}

}  // namespace trestle

// Tells the ranks of tests that the library is this one.
extern "C" __attribute__((visibility("default"))) void trestleDelaysWork() {}
