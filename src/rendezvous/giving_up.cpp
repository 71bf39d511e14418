#include "rendezvous/giving_up.h"

#include <atomic>

#include "base/fork.h"

namespace trestle {

namespace {

constexpr int64_t kNobody = -1;
std::atomic<int64_t> exiting{kNobody};  // the generation of the process that exits

}  // namespace

void begin_exit() {
  exiting.store(process_generation(), std::memory_order_release);
}

bool exits() {
  return exiting.load(std::memory_order_acquire) == int64_t{process_generation()};
}

Error giving_up(const std::string& who) {
  if (exits()) return {Code::kRemoteError, who + " exited while the communicator was being made"};
  return {Code::kAborted, who + " aborted the communicator"};
}

}  // namespace trestle
