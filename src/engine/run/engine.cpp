#include "engine/run/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/cpu/prefetch.h"

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

std::vector<Polled*> polled_of(const EngineConfig& config) {
  std::vector<Polled*> polled;
  if (config.work != nullptr) polled.push_back(config.work.get());
  // The board is closed first: its kernels may stand before the work in a queue of the device, and end only then.
  if (config.device.board != nullptr) polled.push_back(config.device.board.get());
  if (config.device.work != nullptr) polled.push_back(config.device.work.get());
  return polled;
}

void watch(int epoll, int fd) {
  if (fd < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "a transport's descriptor cannot be watched");
}

// What std::bad_alloc cuts off is half done, so the communicator fails. Its operations end in the next rounds: whoever
// waits for them may rely on that, and what he waits with is moved on.
template <class F>
bool moved_or_failed(Engine& engine, F&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    engine.fail_without_memory();
    return true;
  }
}

}  // namespace

Engine::Engine(EngineConfig config, std::vector<std::unique_ptr<Transport>> transports, std::vector<Transport*> router,
               std::unique_ptr<Express> express)
    : config_(std::move(config)),
      crowded_(config_.crowded),
      patience_(patience_limits(config_.spin_us, crowded_)),
      statistics_(config_.clock, config_.dimension_of),
      device_(config_.device.work == nullptr
                  ? nullptr
                  : new DevicePools{ClaimPool(statistics_.staging(), *config_.device.memory, config_.device.device),
                                    ClaimPool(statistics_.staging(), *config_.device.pinned, kHostMemory)}),
      polled_(polled_of(config_)),
      agreement_(config_.rank, config_.peer_names),
      transports_(std::move(transports)),
      router_(std::move(router)),
      express_(std::move(express)),
      no_memory_(std::make_shared<const Error>(Error{Code::kSystemError, out_of_memory_on(config_)})),
      epoll_(UniqueFd::open([this] { return config_.sleeps ? epoll_create1(EPOLL_CLOEXEC) : -1; })),
      wake_(UniqueFd::open([this] { return config_.sleeps ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1; })) {
  for (const auto& transport : transports_) transport->set_agreement(&agreement_);
  if (!opened().ok() || !config_.sleeps) return;
  watch(epoll_.get(), wake_.get());
  for (const auto& transport : transports_) {
    if (transport->shares_events()) {
      shared_fd_ = transport->event_fd();
    } else {
      watch(epoll_.get(), transport->event_fd());
    }
    transport->on_arrival([this] {
      std::atomic_thread_fence(std::memory_order_seq_cst);  // what has arrived is seen by whoever is no sleeper yet
      if (sleepers() != 0) wake();
    });
  }
  if (express_ != nullptr) watch(epoll_.get(), express_->event_fd());
  for (const Polled* polled : polled_) watch(epoll_.get(), polled->event_fd());
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
    // So that give_back() needs no memory: all that were made of this kind are lent now.
    auto* const kept = prepared->forgotten ? nullptr : &idle_[prepared.get()];
    if (kept != nullptr && kept->capacity() <= lent_.size()) kept->reserve(2 * lent_.size() + 1);
  } else {
    operation = std::move(idle->second.back());
    idle->second.pop_back();
    // Where calls come in a row, the next call takes the operation behind this one. Data of megabytes may have pushed
    // that one out of the caches.
    if (!idle->second.empty()) idle->second.back()->prefetch_for_issue();
  }
  lent_.push_back(std::move(operation));
  Operation* const result = lent_.back().get();
  result->lent_at = lent_.size() - 1;
  return result;
}

void Engine::give_back(Operation* operation) {
  operation->free_staging();  // of one that was cancelled
  const MutexLock lock(pool_mutex_);
  const size_t at = std::exchange(operation->lent_at, SIZE_MAX);
  CHECK(at < lent_.size() && lent_[at].get() == operation, "an operation was given back twice");
  std::unique_ptr<Operation> owner = std::exchange(lent_[at], std::move(lent_.back()));
  lent_.pop_back();
  if (at < lent_.size()) lent_[at]->lent_at = at;
  operation->express().reset();
  operation->stream = nullptr;
  operation->item = nullptr;
  operation->held_back_by.reset();
  if (!operation->prepared().forgotten) idle_[&operation->prepared()].push_back(std::move(owner));
}

void Engine::forget(const Prepared* prepared) {
  const MutexLock lock(pool_mutex_);
  prepared->forgotten = true;
  idle_.erase(prepared);
}

void Engine::activate(Operation& operation) {
  {
    const MutexLock lock(inbox_mutex_);
    operation.next_in_inbox = nullptr;
    (inbox_first_ == nullptr ? inbox_first_ : inbox_last_->next_in_inbox) = &operation;
    inbox_last_ = &operation;
    ++inbox_size_;
    inbox_full_.store(true, std::memory_order_release);
  }
  // Either the sleeper sees the inbox, or this thread sees the sleeper.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers() != 0) wake();
}

uint64_t Engine::transport_bytes() const {
  uint64_t bytes = express_ != nullptr ? express_->memory_bytes() : 0;
  for (const auto& transport : transports_) bytes += transport->memory().now();
  return bytes;
}

int Engine::rails_node() const {
  for (const auto& transport : transports_) {
    if (transport->numa_node() >= 0) return transport->numa_node();
  }
  return -1;
}

std::vector<RailReport> Engine::rail_reports() const {
  std::vector<RailReport> all;
  for (const auto& transport : transports_) {
    for (RailReport& report : transport->rail_reports()) all.push_back(std::move(report));
  }
  if (config_.device.shares != nullptr) {
    for (RailReport& report : config_.device.shares->reports()) all.push_back(std::move(report));
  }
  std::stable_sort(all.begin(), all.end(), [](const RailReport& a, const RailReport& b) { return a.peer < b.peer; });
  return all;
}

// ---- drive side

bool Engine::try_progress() {
  if (progress_.looks_held() || !try_lock()) return false;
  const bool moved = round_and_unlock();
  return do_chores() || moved;
}

bool Engine::help() {
  if (progress_.looks_held() || !try_lock()) return false;
  const int64_t now = config_.clock->now_ns();
  if (now - helped_ns_ >= kRarelyNs) {
    for (const auto& transport : transports_) transport->look_everywhere();
    rounds_ = 0;  // and at the deadlines
  }
  helped_ns_ = now;
  bool moved = round_and_unlock();
  moved |= do_chores();
  if (moved && sleepers() != 0) wake();
  return moved;
}

Result<OperationClaims> Engine::reserve(const Prepared& prepared, const Lane& lane) {
  OperationClaims claims;
  if (prepared.place == MemoryPlace::kHost) {
    if (staging_.reserve(prepared.staging_bytes)) return claims;
    fail_without_memory();
    return *failure();
  }
  CHECK(device_ != nullptr, "an operation on a device that the engine lacks");
  if (prepared.staging_bytes != 0) claims.staging = device_->staging.claim(lane, prepared.staging_bytes);
  if (prepared.bounce_bytes != 0)
    claims.bounces = device_->bounces.claim(lane, prepared.bounce_bytes, prepared.bounce_blocks);
  if ((prepared.staging_bytes == 0 || claims.staging != nullptr) &&
      (prepared.bounce_bytes == 0 || claims.bounces != nullptr))
    return claims;
  fail_without_memory();
  return *failure();
}

bool Engine::provide_staging() {
  return moved_or_failed(*this, [this] {
    const StagingPool::Chores done = staging_.chores();
    if (done == StagingPool::Chores::kNoMemory) fail_without_memory();
    return done != StagingPool::Chores::kNothing;
  });
}

bool Engine::round_and_unlock() {
  copy_left_ = config_.copy_bytes;
  const bool moved = moved_or_failed(*this, [this]() TRESTLE_NO_THREAD_SAFETY_ANALYSIS { return progress_locked(); });
  moved_ = moved;
  unlock();
  return moved;
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
  bool moved = arrivals && !failed() && drain_inbox(now);
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
  } else if (suspicion_ && !failed() && poll_work()) {
    moved = true;  // its bell must not ring on while operations stand still
  } else if (suspicion_ && !failed() && config_.clock->now_ns() - suspected_ns_ > kSuspicionNs) {
    fail(with_leaver(*suspicion_));
  }
  if (failed()) {
    return finish_all(failure()) || moved;
  }
  return moved;
}

bool Engine::drain_inbox(int64_t now_ns) {
  Operation* first = nullptr;
  {
    const MutexLock lock(inbox_mutex_);
    active_.reserve(active_.size() + inbox_size_);  // before they leave the inbox, so that none is lost
    first = std::exchange(inbox_first_, nullptr);
    inbox_size_ = 0;
    inbox_full_.store(false, std::memory_order_release);
  }
  for (Operation* operation = first; operation != nullptr; operation = operation->next_in_inbox) {
    const auto place =
        std::upper_bound(active_.begin(), active_.end(), operation,
                         [](const Operation* a, const Operation* b) { return a->number() < b->number(); });
    active_.insert(place, operation);
  }
  for (Operation* operation = first; operation != nullptr && !failed(); operation = operation->next_in_inbox) {
    if (operation->held_back_by != nullptr) hold_back(*operation, *operation->held_back_by);
    operation->activate(now_ns);
    announce(*operation);
  }
  return first != nullptr;
}

void Engine::announce(const Operation& operation) {
  if (failed() || suspicion_ || agreement_.announce(operation.number(), operation.prepared().check)) return;
  Error error = agreement_.error();
  error.message = config_.name + ": " + error.message + "; " + operation.describe();
  transports_failed(std::move(error), config_.clock->now_ns());
}

// A peer has published the part of another call where its part of this one should be.
Error Engine::call_mismatch(const Operation& operation) {
  const ExpressCall& call = *operation.express();
  const Express::Other other =
      operation.on_device() ? config_.device.board->run_by_dissenter(call) : express_->run_by_dissenter(call);
  return agreement_.found({agreement_.name(call.dissenter), other.number, other.check},
                          {agreement_.name(config_.rank), operation.number(), operation.prepared().check});
}

// A rank that left has published everything before this rank heard of its leaving. A part that is not on the board
// now will never be.
Result<bool> Engine::look_for_leavers(Operation& operation) {
  if (TRY(poll_board(operation))) {
    operation.finish_express();
    return true;
  }
  const MutexLock lock(left_mutex_);
  const auto left = left_.find(operation.awaited_rank());
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

std::optional<std::string> Engine::leaver(int32_t rank) {
  const MutexLock lock(left_mutex_);
  const auto left = left_.find(rank);
  if (left == left_.end()) return std::nullopt;
  return left->second;
}

Status Engine::tell_awaited(int64_t now_ns) {
  for (Operation* operation : active_) TRY(operation->tell_awaited(now_ns, router(*operation)));
  return {};
}

Result<bool> Engine::poll_board(Operation& operation) {
  if (operation.on_device()) return config_.device.board->poll(*operation.express());
  return express_->poll(*operation.express());
}

Result<bool> Engine::advance(Operation& operation) {
  if (!operation.express()) return operation.advance(router(operation));
  if (!TRY(poll_board(operation))) {
    if (operation.express()->dissenter >= 0) return call_mismatch(operation);
    if (somebody_left_.load(std::memory_order_acquire)) [[unlikely]]
      return look_for_leavers(operation);
    return false;
  }
  operation.finish_express();
  return true;
}

bool Engine::poll_work() {
  bool moved = false;
  for (Polled* polled : polled_) moved |= polled->poll();
  return moved;
}

Result<bool> Engine::run_operations() {
  bool moved = poll_work();
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
    finish(operation, {});
    moved = true;
  }
  return moved;
}

}  // namespace trestle
