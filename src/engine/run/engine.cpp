#include "engine/run/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/rank_names.h"

namespace trestle {

namespace {

constexpr uint32_t kRoundsPerClockRead = 256;
constexpr int64_t kRarelyNs = 50'000;  // a thread that helps less often than this comes rarely
// The mesh reports a failure at once, but its threads may have to wait for a processor.
constexpr int64_t kSuspicionNs = 1'000'000'000;
constexpr int64_t kMostSpinUs = 50'000;
constexpr int kLooksPerUs = 20;
constexpr int kCrowdedLooks = 20;
constexpr int kCrowdedYields = 30;

// How long a waiter polls before it sleeps. Where ranks outnumber processors, a polling waiter keeps the rank that it
// waits for from running. spin_us: TRESTLE_SPIN, negative where it is not set.
PatienceLimits patience_limits(int64_t spin_us, bool crowded) {
  if (spin_us == 0) return {.looks = 0, .yields = 0, .learns = false};
  if (spin_us > 0) {
    return {.looks = static_cast<int>(std::min(spin_us, kMostSpinUs)) * kLooksPerUs, .yields = 8, .learns = false};
  }
  if (crowded) return {.looks = kCrowdedLooks, .yields = kCrowdedYields, .learns = false};
  return {};
}

std::string out_of_memory_on(const EngineConfig& config) {
  const auto rank = static_cast<size_t>(config.rank);
  return (rank < config.peer_names.size() ? config.peer_names[rank] : "rank " + std::to_string(rank)) +
         " is out of memory";
}

void watch(int epoll, int fd) {
  if (fd < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "a transport's descriptor cannot be watched");
}

}  // namespace

Engine::Engine(EngineConfig config, std::vector<std::unique_ptr<Transport>> transports, std::vector<Transport*> router,
               std::unique_ptr<Express> express)
    : config_(std::move(config)),
      crowded_(config_.crowded),
      patience_(patience_limits(config_.spin_us, crowded_)),
      statistics_(config_.clock, config_.dimension_of),
      agreement_(config_.rank, config_.peer_names),
      transports_(std::move(transports)),
      router_(std::move(router)),
      express_(std::move(express)),
      no_memory_{Code::kSystemError, out_of_memory_on(config_)},
      epoll_(UniqueFd::open([this] { return config_.sleeps ? epoll_create1(EPOLL_CLOEXEC) : -1; })),
      wake_(UniqueFd::open([this] { return config_.sleeps ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1; })) {
  if (!opened().ok() || !config_.sleeps) return;
  watch(epoll_.get(), wake_.get());
  for (const auto& transport : transports_) {
    watch(epoll_.get(), transport->event_fd());
    transport->set_agreement(&agreement_);
  }
  if (express_ != nullptr) watch(epoll_.get(), express_->event_fd());
}

Status Engine::opened() const {
  if (!config_.sleeps || (epoll_ && wake_)) return {};
  return Error{Code::kSystemError, "no descriptors are left for an engine (limit of open files: ulimit -n)"};
}

Engine::~Engine() {
  close(0);
}

// ---- submit side

Operation* Engine::acquire(const std::shared_ptr<const Prepared>& prepared) {
  const MutexLock lock(pool_mutex_);
  const auto idle = idle_.find(prepared.get());
  std::unique_ptr<Operation> operation;
  if (idle == idle_.end() || idle->second.empty()) {
    operation = std::make_unique<Operation>(*this, prepared);
  } else {
    operation = std::move(idle->second.back());
    idle->second.pop_back();
  }
  Operation* result = operation.get();
  lent_.emplace(result, std::move(operation));
  // Here a caller can still be told that there is no memory. Its operation comes to the inbox when nobody can.
  const MutexLock inbox_lock(inbox_mutex_);
  inbox_.reserve(lent_.size());
  return result;
}

void Engine::give_back(Operation* operation) {
  const MutexLock lock(pool_mutex_);
  auto lent = lent_.find(operation);
  CHECK(lent != lent_.end(), "an operation was given back twice");
  operation->express.reset();
  operation->stream = nullptr;
  operation->item = nullptr;
  // Without the memory to keep it for reuse, it goes.
  const auto keep = [&]() TRESTLE_NO_THREAD_SAFETY_ANALYSIS {
    idle_[&operation->prepared()].push_back(std::move(lent->second));
  };
  if (!operation->prepared().forgotten) unless_out_of_memory(keep, [] {});
  lent_.erase(lent);
}

void Engine::forget(const Prepared* prepared) {
  const MutexLock lock(pool_mutex_);
  prepared->forgotten = true;
  idle_.erase(prepared);
}

void Engine::activate(Operation& operation) {
  {
    const MutexLock lock(inbox_mutex_);
    inbox_.push_back(&operation);
    inbox_full_.store(true, std::memory_order_release);
  }
  // Either the sleeper sees the inbox, or this thread sees the sleeper.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers() != 0) wake();
}

// The cause concerns another communicator. Even if that one was aborted, this one was not.
void Engine::hold_back(const Operation& operation, const Error& cause) {
  const Code code = cause.code == Code::kAborted ? Code::kRemoteError : cause.code;
  const std::string end = operation.name() + " of " + config_.name + ", behind it on that stream, was not run";
  const auto known = in_numbers_of(config_.peer_names, config_.name, cause.message);
  const std::string failed = "a communicator that shares a stream with this one has failed";
  Error error{code,
              known ? *known + "; " + failed + " of that, so " + end : failed + ": " + cause.message + "; so " + end};
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

void Engine::fail(Error error) {
  {
    const MutexLock lock(failure_mutex_);
    if (failure_) return;
    LOG(kInfo, kColl, "communicator failed: %s", error.message.c_str());
    failure_ = error;
  }
  failed_.store(true, std::memory_order_release);
  if (config_.on_failure) config_.on_failure(error);
  wake();
}

void Engine::fail_of_user(Error error) {
  error.message = config_.name + ": " + error.message;
  fail(std::move(error));
}

std::optional<Error> Engine::failure() const {
  const MutexLock lock(failure_mutex_);
  return failure_;
}

uint64_t Engine::transport_bytes() const {
  uint64_t bytes = express_ != nullptr ? express_->memory_bytes() : 0;
  for (const auto& transport : transports_) bytes += transport->memory().now();
  return bytes;
}

// ---- drive side

bool Engine::try_progress() {
  if (progress_.looks_held() || !try_lock()) return false;
  const bool moved = round();
  unlock();
  return moved;
}

bool Engine::help() {
  if (progress_.looks_held() || !try_lock()) return false;
  const int64_t now = config_.clock->now_ns();
  if (now - helped_ns_ >= kRarelyNs) {
    for (const auto& transport : transports_) transport->look_everywhere();
    rounds_ = 0;  // and at the deadlines
  }
  helped_ns_ = now;
  const bool moved = round();
  unlock();
  if (moved && sleepers() != 0) wake();
  return moved;
}

// Where memory cannot be had in the middle of a round, operations are left half done: the communicator must end.
bool Engine::round() {
  return unless_out_of_memory([this]() TRESTLE_NO_THREAD_SAFETY_ANALYSIS { return progress_locked(); },
                              [this] {
                                fail_without_memory();
                                return true;
                              });
}

// Telling it may need memory, too. The sentence is there since the communicator was made.
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
    {
      const MutexLock lock(failure_mutex_);
      if (!failure_) failure_ = std::move(no_memory_);
    }
    failed_.store(true, std::memory_order_release);
    wake();
  });
}

bool Engine::progress_locked() {
  if (closed_) return false;
  if (announced_sleep_ && sleepers() == 0) finish_sleep();
  int64_t now = 0;
  const bool tick = rounds_++ % kRoundsPerClockRead == 0;
  const bool arrivals = inbox_full_.load(std::memory_order_acquire);
  if (tick || arrivals) {
    now = config_.clock->now_ns();
    last_driven_ns_.store(now, std::memory_order_relaxed);
  }
  bool moved = arrivals && drain_inbox(now);
  if (arrivals && holds_back_.load(std::memory_order_acquire)) suspect_held_back();
  if (!failed() && !suspicion_) {
    Result<bool> result = run_operations();
    if (tick && result.ok()) {
      const Status told = tell_awaited(now);
      if (!told.ok()) result = with_context(told.error());
    }
    if (!result.ok()) {
      transports_failed(std::move(result).error(), config_.clock->now_ns());
    } else {
      moved |= result.value();
    }
    if (tick) check_deadlines(now);
  } else if (suspicion_ && !failed() && config_.clock->now_ns() - suspected_ns_ > kSuspicionNs) {
    fail(with_leaver(*suspicion_));
  }
  if (failed()) {
    return finish_all(*failure()) || moved;
  }
  return moved;
}

// A rank that fails closes its connections, and its peers see that before they hear why. The control mesh brings the
// cause, and gets a moment to do so. The same holds for calls that differ, where calls are compared. But no other
// source reports lengths that only two ranks know.
void Engine::transports_failed(Error error, int64_t now_ns) {
  const bool told_elsewhere = error.code == Code::kRemoteError ||
                              (error.code == Code::kInvalidUsage && config_.calls_checked && agreement_.broken());
  if (error.code == Code::kInvalidUsage && agreement_.broken() && !config_.calls_checked)
    error.message += "; TRESTLE_CHECK=1 shows both calls";
  if (!told_elsewhere) {
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

bool Engine::drain_inbox(int64_t now_ns) {
  drained_.clear();  // a round without memory may have left some, which are active
  {
    const MutexLock lock(inbox_mutex_);
    drained_.reserve(inbox_.capacity());
    active_.reserve(active_.size() + inbox_.size());
    drained_.swap(inbox_);
    inbox_full_.store(false, std::memory_order_release);
  }
  for (Operation* operation : drained_) {
    const auto place =
        std::upper_bound(active_.begin(), active_.end(), operation,
                         [](const Operation* a, const Operation* b) { return a->number() < b->number(); });
    active_.insert(place, operation);
  }
  // Staging is the most memory of a round. An operation that does not get it is active and ends with the communicator.
  for (Operation* operation : drained_) {
    if (failed()) break;
    operation->activate(now_ns);
    announce(*operation);
  }
  return !drained_.empty();
}

void Engine::announce(const Operation& operation) {
  if (failed() || suspicion_ || agreement_.announce(operation.number(), operation.prepared().check)) return;
  Error error = agreement_.error();
  error.message = config_.name + ": " + error.message + "; " + operation.describe();
  transports_failed(std::move(error), config_.clock->now_ns());
}

// A peer has published the part of another call where its part of this one should be.
Error Engine::dissent(const Operation& operation) {
  const ExpressCall& call = *operation.express;
  const Express::Other other = express_->run_by_dissenter(call);
  return agreement_.found({agreement_.name(call.dissenter), other.number, other.check},
                          {agreement_.name(config_.rank), operation.number(), operation.prepared().check});
}

// A rank that left has published everything before this rank heard of its leaving. What is not on the board now will
// never be.
Result<bool> Engine::look_for_leavers(Operation& operation) {
  ExpressCall& call = *operation.express;
  if (express_->poll(call)) {
    operation.finish_express();
    return true;
  }
  const MutexLock lock(left_mutex_);
  const auto left = left_.find(express_->awaited_rank(call));
  if (left == left_.end()) return false;
  return Error{Code::kRemoteError, left->second};
}

void Engine::peer_left(int32_t rank, std::string sentence) {
  {
    const MutexLock lock(left_mutex_);
    left_.emplace(rank, std::move(sentence));
  }
  somebody_left_.store(true, std::memory_order_release);
  wake();
}

Status Engine::tell_awaited(int64_t now_ns) {
  for (Operation* operation : active_) TRY(operation->tell_awaited(now_ns, router()));
  return {};
}

Result<bool> Engine::advance(Operation& operation) {
  if (!operation.express) return operation.advance(router());
  if (!express_->poll(*operation.express)) {
    if (operation.express->dissenter >= 0) return dissent(operation);
    if (somebody_left_.load(std::memory_order_acquire)) [[unlikely]]
      return look_for_leavers(operation);
    return false;
  }
  operation.finish_express();
  return true;
}

Result<bool> Engine::run_operations() {
  bool moved = false;
  for (const auto& transport : transports_) {
    Result<bool> result = transport->progress();
    if (!result.ok()) return with_context(std::move(result).error());
    moved |= result.value();
  }
  for (size_t i = 0; i < active_.size();) {
    Operation* operation = active_[i];
    Result<bool> result = advance(*operation);
    if (!result.ok()) return with_context(std::move(result).error());
    moved |= result.value();
    if (!operation->complete()) {
      ++i;
      continue;
    }
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(operation, nullptr);
    moved = true;
  }
  return moved;
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
  statistics_.ended(operation->prepared().collective, error != nullptr);
  stream->operation_done(*operation, error);
  retire(operation);
}

bool Engine::finish_all(const Error& error) {
  if (!transports_closed_) {
    transports_closed_ = true;
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
      if (lent.first->stream.load(std::memory_order_acquire) != nullptr) queued.push_back(lent.first);
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
}

void Engine::close(int linger_ms, int64_t give_up_ns) {
  if (!lock_before(give_up_ns)) return;
  if (!closed_) {
    // What cannot be ended for want of memory ends with the process.
    unless_out_of_memory(
        [this]() TRESTLE_NO_THREAD_SAFETY_ANALYSIS {
          if (failed()) finish_all(*failure());
        },
        [] {});
    closed_ = true;
    if (!transports_closed_) {
      transports_closed_ = true;
      // This rank must be able to answer questions while the transports linger.
      const ProgressLock::Loan lent(progress_);
      close_transports(linger_ms);
    }
  }
  unlock();
}

void Engine::close_transports(int linger_ms) {
  for (const auto& transport : transports_) unless_out_of_memory([&] { transport->close(linger_ms); }, [] {});
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
