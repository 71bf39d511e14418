// What an engine tells about its operations: for sentences, and for other ranks that ask who is to blame.
#include <algorithm>

#include "engine/engine.h"

namespace trestle {

std::string Engine::oldest_operation() {
  const PatientLock lock(progress_);
  return active_.empty() ? "" : active_.front()->describe();
}

// Who ends an operation holds the lock until it is counted.
size_t Engine::settled_pending() {
  const PatientLock lock(progress_);
  return pending();
}

const Operation* Engine::active(const OperationKey& operation) const {
  const auto found = std::find_if(active_.begin(), active_.end(),
                                  [&operation](const Operation* active) { return active->key() == operation; });
  return found == active_.end() ? nullptr : *found;
}

bool Engine::queued(const OperationKey& operation) {
  const MutexLock lock(pool_mutex_);
  return std::any_of(lent_.begin(), lent_.end(), [&operation](const auto& lent) {
    // Whoever has put it on a stream has bound it before.
    return lent.first->stream.load(std::memory_order_acquire) != nullptr && lent.first->key() == operation;
  });
}

Standing Engine::standing(const OperationKey& operation) {
  const PatientLock lock(progress_);
  Standing standing;
  const Operation* in = active(operation);
  if (in != nullptr) {
    standing.state = Standing::State::kActive;
  } else {
    if (queued(operation)) standing.state = Standing::State::kQueued;
    if (!active_.empty()) in = active_.front();
  }
  if (in == nullptr) return standing;
  standing.in = in->key();
  standing.awaited = in->awaited_rank();
  standing.description = in->describe();
  return standing;
}

void Engine::end_inquiry(const OperationKey& operation, Error error) {
  {
    const PatientLock lock(progress_);
    inquired_ = false;
    if (active(operation) == nullptr) return;
  }
  fail(std::move(error));
}

}  // namespace trestle
