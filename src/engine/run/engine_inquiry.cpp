// What an engine reports about its operations: for error messages, and for other ranks that ask which rank is to blame.
#include <sched.h>

#include <algorithm>

#include "base/log.h"
#include "engine/run/engine.h"

namespace trestle {

namespace {

// Programs test many times a second, or do something else between.
constexpr int64_t kTestedLatelyNs = 1'000'000'000;

}  // namespace

// The operation whose user-defined reduction runs, and so holds up all others; nullptr: none.
const Operation* Engine::in_user_function() const {
  const auto found =
      std::find_if(active_.begin(), active_.end(), [](const Operation* active) { return active->in_user_function(); });
  return found == active_.end() ? nullptr : *found;
}

const Operation* Engine::oldest() const {
  if (const Operation* const held = in_user_function()) return held;
  return active_.empty() ? nullptr : active_.front();
}

std::string Engine::oldest_operation() {
  const PatientLock lock(progress_);
  const Operation* const operation = oldest();
  return operation == nullptr ? "" : operation->describe();
}

bool Engine::lock_before(int64_t deadline_ns) {
  while (!try_lock()) {
    if (deadline_ns != INT64_MAX && (progress_.looks_lent() || monotonic_clock().now_ns() >= deadline_ns)) return false;
    ::sched_yield();
  }
  return true;
}

// A thread that called exit() may hold the lock and wait for this one. Only then is the lock held for long and not
// lent.
std::string Engine::open_operation(int64_t deadline_ns) {
  while (progress_.looks_held() && !progress_.looks_lent()) {
    if (monotonic_clock().now_ns() >= deadline_ns) return "an operation";
    ::sched_yield();
  }
  const PatientLock lock(progress_);
  const Operation* const operation = oldest();
  return operation == nullptr ? first_queued() : operation->name();
}

// The first operation among those that have not been driven yet.
std::string Engine::first_queued() {
  const MutexLock lock(pool_mutex_);
  const Operation* first = nullptr;
  for (const auto& lent : lent_) {
    const bool bound = lent->stream.load(std::memory_order_acquire) != nullptr;
    if (bound && (first == nullptr || lent->number() < first->number())) first = lent.get();
  }
  return first == nullptr ? "an operation" : first->name();
}

bool Engine::is_waited_for() const {
  const int64_t tested_ns = last_tested_ns_.load(std::memory_order_relaxed);
  return has_waiters() || (tested_ns != 0 && config_.clock->now_ns() - tested_ns < kTestedLatelyNs);
}

// A thread that ends an operation holds the lock until the operation is counted.
size_t Engine::settled_pending() {
  const PatientLock lock(progress_);
  return pending();
}

const Operation* Engine::active(const OperationKey& operation) const {
  const auto found = std::find_if(active_.begin(), active_.end(),
                                  [&operation](const Operation* active) { return active->key() == operation; });
  return found == active_.end() ? nullptr : *found;
}

// No operation ends meanwhile, and an operation on a stream keeps the stream alive.
std::shared_ptr<Stream> Engine::stream_of(const OperationKey& operation) {
  const MutexLock lock(pool_mutex_);
  for (const auto& lent : lent_) {
    // An operation was bound before it was put on a stream.
    Stream* const stream = lent->stream.load(std::memory_order_acquire);
    if (stream != nullptr && lent->key() == operation) return stream->shared_from_this();
  }
  return nullptr;
}

Standing Engine::standing(const OperationKey& operation) {
  const PatientLock lock(progress_);
  Standing standing;
  const Operation* in = active(operation);
  if (in != nullptr) {
    standing.state = Standing::State::kActive;
    if (const Operation* const held = in_user_function()) in = held;
  } else {
    standing.stream = stream_of(operation);
    if (standing.stream != nullptr) standing.state = Standing::State::kQueued;
    in = oldest();
  }
  if (in == nullptr) return standing;
  standing.in = in->key();
  standing.awaited = in->awaited_rank();
  standing.description = in->describe();
  return standing;
}

void Engine::check_deadlines(int64_t now_ns) {
  if (inquired_) return;
  for (const Operation* operation : active_) {
    if (operation->deadline_ns() == 0 || now_ns < operation->deadline_ns()) continue;
    const std::string sentence =
        "deadline passed after " + operation->timeout_text() + " on " + config_.name + ": " + operation->describe();
    const Overdue overdue{operation->key(), operation->awaited_rank(), operation->timeout_ns(), sentence};
    inquired_ = config_.on_overdue && config_.on_overdue(overdue);
    if (!inquired_) fail({Code::kTimeout, sentence});
    return;
  }
  // In a simulation nobody asks whom it waits for.
  if (!wait_.is_due(now_ns) || !config_.on_overdue) return;
  const Operation* const operation = oldest();
  const int64_t waited_s = wait_.look(operation == nullptr ? "" : operation->describe(), now_ns);
  if (waited_s == 0) return;
  const Overdue waits{operation->key(), operation->awaited_rank(), operation->timeout_ns(), wait_.at(), waited_s};
  if (!config_.on_overdue(waits))
    LOG(kWarn, kColl, "%s has waited %d s: %s", config_.name.c_str(), static_cast<int>(waited_s), wait_.at().c_str());
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
