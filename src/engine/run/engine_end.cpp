// How a communicator's engine fails and ends, and with it its operations.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/rank_names.h"
#include "base/scope_exit.h"
#include "base/thread.h"
#include "engine/run/engine.h"
#include "engine/run/progress.h"

namespace trestle {

namespace {

constexpr const char* kEnding = "while a communicator ends";

// Needs memory for the line of the log, so not for set_failure(). A program that aborts its communicator knows why.
void tell(const EngineConfig& config, const Error& failure) {
  if (failure.code == Code::kAborted)
    LOG(kInfo, kColl, "communicator failed on %s: %s", config.name.c_str(), failure.message.c_str());
  else
    LOG(kWarn, kColl, "communicator failed on %s: %s", config.name.c_str(), failure.message.c_str());
  if (config.on_failure) config.on_failure(failure);
}

}  // namespace

// The cause concerns another communicator. Even if that one was aborted, this one was not. The rank that died for it
// may belong to this one too. Then this one's control mesh reports that death itself, and gets a moment to do so.
void Engine::hold_back(const Operation& operation, const Error& cause) {
  const Code code = cause.code == Code::kAborted ? Code::kRemoteError : cause.code;
  const std::string end = operation.name() + " of " + config_.name + ", behind it on that stream, was not run";
  const auto known = in_numbers_of(config_.peer_names, config_.name, cause.message);
  const std::string failed = cause.code == Code::kUnhandledDeviceError
                                 ? "work of a device before it has failed"
                                 : "a communicator that shares a stream with this one has failed";
  Error error{code, known ? *known + "; so " + failed + ", and " + end : failed + ": " + cause.message + "; so " + end};
  if (code != Code::kRemoteError) return fail(std::move(error));
  if (!suspicion_) transports_failed(std::move(error), config_.clock->now_ns());
}

// Sets failure_ and failed_ under one lock: once a program was told the failure, no call of it is taken.
bool Engine::set_failure(Failure failure) {
  const int64_t now_ns = config_.clock->now_ns();
  const MutexLock lock(failure_mutex_);
  if (failure_) return false;
  failure_ = std::move(failure);
  failed_ns_.store(now_ns, std::memory_order_relaxed);
  failed_.store(true, std::memory_order_release);
  return true;
}

void Engine::fail(Error error) {
  if (failed()) return;
  const auto failure = std::make_shared<const Error>(std::move(error));
  if (!set_failure(failure)) return;
  ScopeExit thrown([this] { tell_later(); });
  tell(config_, *failure);
  thrown.release();
  wake();
}

void Engine::fail_without_memory() noexcept {
  if (set_failure(no_memory_)) tell_later();
}

void Engine::tell_later() {
  untold_.store(true, std::memory_order_release);
  Progress::process().due_earlier();
  wake();
}

void Engine::tell_failure() {
  if (untold_.exchange(false, std::memory_order_acq_rel)) tell(config_, *failure());
}

void Engine::fail_of_user(Error error) {
  error.message = config_.name + ": " + error.message;
  fail(std::move(error));
}

Failure Engine::failure() const {
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

void Engine::finish(Operation* operation, const Failure& failure) {
  Stream* stream = operation->stream;
  CHECK(stream != nullptr, "an active operation without a stream");
  const auto keep = stream->shared_from_this();                    // the last operation may be the stream's only owner
  const ScopeExit left([this, operation] { retire(operation); });  // whatever comes next on the stream
  if (failure != nullptr) operation->abandon();
  operation->free_staging();
  statistics_.ended(operation->prepared().collective, failure != nullptr);
  stream->operation_done(*operation, failure);
}

bool Engine::finish_all(const Failure& failure) {
  if (!transports_closed_) {
    transports_closed_ = true;
    close_work(INT64_MAX);
    close_transports(0);
  }
  // An operation of the inbox need not become active, which would take memory.
  const auto take_any = [this]() TRESTLE_NO_THREAD_SAFETY_ANALYSIS -> Operation* {
    if (!active_.empty()) {
      Operation* const first = active_.front();
      active_.erase(active_.begin());
      return first;
    }
    const MutexLock lock(inbox_mutex_);
    if (inbox_first_ == nullptr) return nullptr;
    inbox_full_.store(--inbox_size_ != 0, std::memory_order_release);
    return std::exchange(inbox_first_, inbox_first_->next_in_inbox);
  };
  bool ended = false;
  // Finishing an operation may activate the next one of its stream here. So this repeats until nothing is left.
  for (Operation* next = take_any(); next != nullptr; next = take_any(), ended = true) finish(next, failure);
  return cancel_queued(failure) || ended;
}

// Operations that wait behind other communicators' work, or behind an event, must not delay the end of this
// communicator. The end of one moves the last one to its place in the list. Takes no memory.
bool Engine::cancel_queued(const Failure& failure) {
  const auto lent = [this](size_t at) -> Operation* {
    const MutexLock lock(pool_mutex_);
    return at < lent_.size() ? lent_[at].get() : nullptr;
  };
  bool any = false;
  size_t at = 0;
  while (Operation* const operation = pending() != 0 ? lent(at) : nullptr) {
    Stream* const stream = operation->stream.load(std::memory_order_acquire);
    if (stream == nullptr || !stream->shared_from_this()->cancel(*operation, failure)) {
      ++at;
      continue;
    }
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
    if (failed()) finish_all(failure());
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
  bool closed = false;
  const auto close = [&] {
    closed = std::ranges::all_of(polled_, [give_up_ns](Polled* polled) { return polled->close(give_up_ns); });
  };
  run_or_end_process(kEnding, close);
  return closed;
}

// This rank must be able to answer questions while the transports linger, or wait for those that read its memory. A
// transport that was half closed would let peers use memory that is gone.
void Engine::close_transports(int linger_ms) {
  const ProgressLock::Loan lent(progress_);
  run_or_end_process(kEnding, [&] {
    for (const auto& transport : transports_) transport->close(linger_ms);
    if (config_.device.shares != nullptr) config_.device.shares->close(monotonic_clock().now_ns());
  });
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
