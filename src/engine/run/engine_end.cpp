// How a communicator's engine fails and ends, and with it its operations.
#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/rank_names.h"
#include "engine/run/engine.h"

namespace trestle {

// The cause concerns another communicator. Even if that one was aborted, this one was not.
void Engine::hold_back(const Operation& operation, const Error& cause) {
  const Code code = cause.code == Code::kAborted ? Code::kRemoteError : cause.code;
  const std::string end = operation.name() + " of " + config_.name + ", behind it on that stream, was not run";
  const auto known = in_numbers_of(config_.peer_names, config_.name, cause.message);
  const std::string failed = cause.code == Code::kUnhandledDeviceError
                                 ? "work of a device before it has failed"
                                 : "a communicator that shares a stream with this one has failed";
  Error error{code, known ? *known + "; so " + failed + ", and " + end : failed + ": " + cause.message + "; so " + end};
  if (code != Code::kRemoteError) return fail(std::move(error));
  const MutexLock lock(failure_mutex_);
  if (!held_back_) held_back_ = std::move(error);
  holds_back_.store(true, std::memory_order_release);
}

void Engine::suspect_held_back() {
  std::optional<Error> error;
  {
    const MutexLock lock(failure_mutex_);
    error.swap(held_back_);
    holds_back_.store(false, std::memory_order_relaxed);
  }
  if (error && !failed() && !suspicion_) transports_failed(std::move(*error), config_.clock->now_ns());
}

// Sets failure_ and failed_ under one lock: once a program was told the failure, no call of it is taken.
void Engine::fail(Error error) {
  const int64_t now_ns = config_.clock->now_ns();
  {
    const MutexLock lock(failure_mutex_);
    if (failure_) return;
    LOG(kInfo, kColl, "communicator failed: %s", error.message.c_str());
    failure_ = error;
    failed_ns_.store(now_ns, std::memory_order_relaxed);
    failed_.store(true, std::memory_order_release);
  }
  if (config_.on_failure) config_.on_failure(error);
  wake();
}

// Reporting it may need memory too. The sentence was made together with the communicator.
void Engine::fail_without_memory() {
  const auto tell = [this] {
    Error error;
    {
      const MutexLock lock(failure_mutex_);
      error = no_memory_;
    }
    fail(std::move(error));
  };
  unless_out_of_memory(tell, [this] {
    const Error* first = nullptr;
    {
      const MutexLock lock(failure_mutex_);
      if (!failure_) first = &failure_.emplace(std::move(no_memory_));
      failed_.store(true, std::memory_order_release);
    }
    // The failure stays as it is, so it may be read without the lock. Listeners that need no memory still hear of it.
    if (first != nullptr && config_.on_failure) unless_out_of_memory([&] { config_.on_failure(*first); }, [] {});
    wake();
  });
}

void Engine::fail_of_user(Error error) {
  error.message = config_.name + ": " + error.message;
  fail(std::move(error));
}

std::optional<Error> Engine::failure() const {
  const MutexLock lock(failure_mutex_);
  return failure_;
}

// A rank that fails closes its connections, and its peers see that before they hear why. The control mesh brings the
// cause, and gets a moment to do so. The same holds for calls that differ, where calls are compared. But no other
// source reports lengths that only two ranks know.
void Engine::transports_failed(Error error, int64_t now_ns) {
  const bool mesh_reports = error.code == Code::kRemoteError ||
                            (error.code == Code::kInvalidUsage && config_.calls_checked && agreement_.broken());
  if (error.code == Code::kInvalidUsage && agreement_.broken() && !config_.calls_checked)
    error.message += "; TRESTLE_CHECK=1 shows both calls";
  if (!mesh_reports) {
    fail(std::move(error));
    return;
  }
  suspicion_ = std::move(error);
  suspected_ns_ = now_ns;
}

// A rank that cannot be reached may have left in order. No failure is reported for that.
Error Engine::with_leaver(const Error& error) {
  const MutexLock lock(left_mutex_);
  for (const auto& [rank, sentence] : left_) {
    const std::string& name = config_.peer_names[static_cast<size_t>(rank)];
    const size_t at = error.message.find(name);
    if (at != std::string::npos && at != 0) return {error.code, sentence + ": " + error.message};
  }
  return error;
}

// Adds what the failure cost: "…; on rank 3 (…) operation 17 (…), awaiting …". The sentence of a remote failure begins
// with the rank to blame. A failed reduction has named its own operation already.
Error Engine::with_context(Error error) const {
  const bool remote = error.code == Code::kRemoteError;
  if (!remote) error.message = config_.name + ": " + error.message;
  if (active_.empty() || error.code == Code::kReductionFailed) return error;
  error.message += (remote ? "; on " + config_.name + " " : "; ") + active_.front()->describe();
  return error;
}

void Engine::finish(Operation* operation, const Error* error) {
  Stream* stream = operation->stream;
  CHECK(stream != nullptr, "an active operation without a stream");
  const auto keep = stream->shared_from_this();  // the last operation may be the stream's only owner
  if (error != nullptr) operation->abandon();
  operation->free_staging();
  statistics_.ended(operation->prepared().collective, error != nullptr);
  stream->operation_done(*operation, error);
  retire(operation);
}

bool Engine::finish_all(const Error& error) {
  if (!transports_closed_) {
    transports_closed_ = true;
    close_work(INT64_MAX);
    close_transports(0);
  }
  bool ended = false;
  // Finishing an operation may activate the next one of its stream here. So this repeats until nothing is left.
  do {
    for (; !active_.empty(); ended = true) {
      finish(active_.front(), &error);  // where memory is short, the next round tries again
      active_.erase(active_.begin());
    }
  } while (drain_inbox(0));
  return cancel_queued(error) || ended;
}

// Operations that wait behind other communicators' work, or behind an event, must not delay the end of this
// communicator.
bool Engine::cancel_queued(const Error& error) {
  if (pending() == 0) return false;
  std::vector<Operation*> queued;
  {
    const MutexLock lock(pool_mutex_);
    for (const auto& lent : lent_) {
      if (lent->stream.load(std::memory_order_acquire) != nullptr) queued.push_back(lent.get());
    }
  }
  bool any = false;
  for (Operation* operation : queued) {
    const auto stream = operation->stream.load(std::memory_order_acquire)->shared_from_this();
    if (!stream->cancel(*operation, error)) continue;
    statistics_.ended(operation->prepared().collective, true);
    retire(operation);
    any = true;
  }
  return any;
}

// The end of an operation that has left its stream, or never came to it.
void Engine::retire(Operation* operation) {
  give_back(operation);
  pending_.fetch_sub(1, std::memory_order_acq_rel);
  if (sleepers() != 0) wake();
}

void Engine::close(int linger_ms, int64_t give_up_ns) {
  if (!lock_before(give_up_ns)) return;
  if (!closed_ && close_work(give_up_ns)) {
    // Operations that cannot be ended for want of memory end with the process.
    unless_out_of_memory(
        [this]() TRESTLE_NO_THREAD_SAFETY_ANALYSIS {
          if (failed()) finish_all(*failure());
        },
        [] {});
    closed_ = true;
    if (!transports_closed_) {
      transports_closed_ = true;
      close_transports(linger_ms);
    }
  }
  unlock();
}

// Before the transports: work may read memory of peers. A user-defined function may take any time.
bool Engine::close_work(int64_t give_up_ns) {
  if (polled_.empty()) return true;
  const ProgressLock::Loan lent(progress_);
  return std::ranges::all_of(polled_, [give_up_ns](Polled* polled) { return polled->close(give_up_ns); });
}

// This rank must be able to answer questions while the transports linger, or wait for those that read its memory.
void Engine::close_transports(int linger_ms) {
  const ProgressLock::Loan lent(progress_);
  for (const auto& transport : transports_) unless_out_of_memory([&] { transport->close(linger_ms); }, [] {});
  if (config_.device.shares != nullptr)
    unless_out_of_memory([&] { config_.device.shares->close(monotonic_clock().now_ns()); }, [] {});
}

void Engine::free_transports() {
  std::vector<std::unique_ptr<Transport>> transports;  // freed without the lock
  std::unique_ptr<Express> express;
  const PatientLock lock(progress_);
  CHECK(closed_, "the transports of an engine that is not closed");
  transports.swap(transports_);
  express.swap(express_);
}

}  // namespace trestle
