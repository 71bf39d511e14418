// Engine: runs the operations of one rank of one communicator over its transports.
//
// Owned by the communicator (shared with the threads that drive it). Any thread may call the submit side (operation
// pool, activate, fail) and the drive side (try_progress, sleep). Everything else happens under the progress lock.
// Threads only ever try that lock, or borrow it while a user-defined reduction runs (engine/run/progress_lock.h).
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/rank_names.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/wait_marks.h"
#include "engine/run/operation.h"
#include "engine/run/patience.h"
#include "engine/run/progress_lock.h"
#include "engine/run/statistics.h"
#include "engine/run/stream.h"
#include "engine/work/device_place.h"
#include "engine/work/work_queue.h"
#include "express/express.h"
#include "transport/agreement.h"
#include "transport/transport.h"

namespace trestle {

// The state of an operation on this rank, told to another rank that waits for this rank's part.
struct Standing {
  enum class State : uint8_t {
    kUnknown,  // not on any stream: not called yet, or done
    kQueued,   // its stream has not reached it
    kActive,
  };
  State state = State::kUnknown;
  // The operation that this rank works on: the one whose user-defined reduction runs; else the requested one if it is
  // active; else the oldest, if there is any.
  std::optional<OperationKey> in;
  int32_t awaited = -1;            // the rank that `in` waits for
  std::string description;         // of `in`
  std::shared_ptr<Stream> stream;  // stream of a queued operation
};

struct EngineConfig {
  int32_t rank = 0;
  int32_t ranks = 1;
  std::string name;  // of the rank, for sentences
  RankNames peer_names;
  Clock* clock = nullptr;
  std::vector<uint8_t> dimension_of;  // by rank: see Statistics
  bool crowded = false;               // ranks of this communicator share processors, by their masks
  bool sleeps = true;                 // false: no thread waits by sleep(), and no descriptors are needed
  // Where work on data in host memory goes; nullptr: the driving thread does it at once.
  std::unique_ptr<WorkQueue> work;
  DevicePlace device;                // for operations whose buffers are on a device
  uint64_t copy_bytes = UINT64_MAX;  // of copies in a round: then the transports have their turn
  int64_t spin_us = -1;              // TRESTLE_SPIN; negative: depends on whether ranks outnumber processors
  // The communicator compares calls, and describes a difference better than an engine can.
  bool calls_checked = false;
  // Called by the first failure, on the failing thread; must not block or call the engine. Without memory it is called
  // again by tell_failure().
  std::function<void(const Error&)> on_failure;
  // Called under the progress lock when a deadline passes, or an operation waits for long; must not block or call the
  // engine. True: an inquiry finds out which rank is to blame. After a deadline end_inquiry() follows in bounded time,
  // a wait is only said. False, or empty: the engine fails, or says it, at once.
  std::function<bool(const Overdue&)> on_overdue;
};

class ProgressThread;

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // transports: owned; router[rank] points into them (nullptr: none).
  Engine(EngineConfig config, std::vector<std::unique_ptr<Transport>> transports, std::vector<Transport*> router,
         std::unique_ptr<Express> express);
  ~Engine();
  // An error if the engine has no descriptors to sleep with, which makes it useless.
  Status opened() const;

  // ---- submit side
  // An unbound operation of the pool for this Prepared. The caller binds it and puts it on a stream, or gives it back.
  // Allocates nothing where the pool has one and as many were lent before.
  Operation* acquire(const std::shared_ptr<const Prepared>& prepared);
  void give_back(Operation* operation);
  // A Prepared has left its cache. Drops its idle operations now. Those that still run, or are acquired later, are
  // dropped when they are done.
  void forget(const Prepared* prepared);
  // Called by streams: the operation has reached the head. If it is held back, the communicator fails in the next
  // round: the work before the operation on its stream has failed, so its input does not exist. Takes no memory.
  void activate(Operation& operation);
  // Number of operations that are bound and not done.
  void count_pending(size_t operations) { pending_.fetch_add(operations, std::memory_order_acq_rel); }
  size_t pending() const { return pending_.load(std::memory_order_acquire); }
  // pending() without operations that their streams have passed. Not for holders of the progress lock.
  size_t settled_pending();
  // The engine's counters. Any thread, within the rules in Statistics.
  Statistics& statistics() { return statistics_; }
  // Memory for data that the transports and the board hold. Any thread.
  uint64_t transport_bytes() const;
  // The NUMA node of its rails: of the first transport whose node is known; -1: none is. Until free_transports().
  int rails_node() const;
  // As Transport::rail_reports(), over all transports. Any thread, until free_transports().
  std::vector<RailReport> rail_reports() const;
  // Host memory for the partial results of operations. Any thread. No large block is allocated or freed under the
  // progress lock: the thread that drove does that after its round.
  StagingPool& staging() { return staging_; }
  // Makes sure that there is memory for an operation that is about to be queued on the lane, as StagingPool::reserve().
  // Returns the memory of a device that the operation must have. Error: there is none, and the communicator has failed,
  // because other ranks may have made the call already.
  Result<OperationClaims> reserve(const Prepared& prepared, const Lane& lane);
  bool has_work_queue() const { return config_.work != nullptr; }
  // The number of its device; kHostMemory: it has none, and takes no operation whose buffers are on one.
  int32_t device() const { return config_.device.device; }
  // The express path, or nullptr. The caller must hold the progress lock (try_lock) to use it.
  Express* express() { return express_.get(); }
  // The board of devices, or nullptr. device_board.h says who may call what.
  DeviceBoard* device_board() const { return config_.device.board.get(); }

  // Of its device; nullptr: it has none.
  const std::shared_ptr<DriverCalls>& driver_calls() const { return config_.device.calls; }

  // Sets the communicator's failure. The first one stays, later ones are ignored. Operations end with it at the next
  // progress.
  void fail(Error error);
  // fail() for a failure of a user-defined function on this rank.
  void fail_of_user(Error error);
  // fail() because this rank has no memory. It needs none itself: the watch thread tells the others (tell_failure).
  void fail_without_memory() noexcept;
  // Calls on_failure if the thread that failed had no memory for it.
  void tell_failure();
  // Ends an operation that is on no stream: it has left its stream, or its call failed after it had got its number.
  void retire(Operation* operation);
  Failure failure() const;
  // When it failed, by the engine's clock; 0: it has not.
  int64_t failed_ns() const { return failed_ns_.load(std::memory_order_relaxed); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // What the oldest operation waits for, "" if there is none. Not for holders of the progress lock.
  std::string oldest_operation();
  // "operation 17 (allreduce ...)", the oldest that is not done. "an operation" if none has started, or if the progress
  // lock stays held and not lent until `deadline_ns` of the monotonic clock.
  std::string open_operation(int64_t deadline_ns);
  // The rank will publish nothing any more; `sentence` says why. Ends the operations that wait for it on the board.
  // Any thread.
  void peer_left(int32_t rank, std::string sentence);
  // The sentence of peer_left() about that rank, if there was one.
  std::optional<std::string> leaver(int32_t rank);
  // The state of that operation here. Not for holders of the progress lock.
  Standing standing(const OperationKey& operation);
  // The result of on_overdue: fails the engine with it, unless the operation is complete after all. Not for holders of
  // the lock.
  void end_inquiry(const OperationKey& operation, Error error);

  // ---- drive side
  bool try_lock() TRESTLE_TRY_ACQUIRE(true, progress_) { return progress_.try_lock(); }
  void unlock() TRESTLE_RELEASE(progress_) { progress_.unlock(); }
  // One round of progress, unless another thread drives. True if anything moved.
  bool try_progress();
  // One round, by a thread that will not stay. If anything moved, it wakes a sleeper, which continues what this round
  // left half done. A thread that comes rarely has the transports look everywhere.
  bool help();
  // How a waiting thread should behave.
  bool crowded() const { return crowded_; }
  Patience& patience() { return patience_; }
  bool busy() const { return pending() != 0; }
  // A call was issued. Its caller may come to wait, and so drive it.
  void issued() {
    const int64_t now_ns = config_.clock->now_ns();
    issued_ns_.store(now_ns, std::memory_order_relaxed);
    // Consecutive calls do not postpone the helper.
    if (pending() <= 1) last_driven_ns_.store(now_ns, std::memory_order_relaxed);
  }
  // The thread that drives it when no thread waits; nullptr: none does. Progress sets it.
  ProgressThread* helper() const { return helper_.load(std::memory_order_acquire); }
  void set_helper(ProgressThread* helper) { helper_.store(helper, std::memory_order_release); }
  int64_t issued_ns() const { return issued_ns_.load(std::memory_order_relaxed); }
  int64_t last_driven_ns() const { return last_driven_ns_.load(std::memory_order_relaxed); }

  // Sleeps until something happens, at most timeout_ms. May return early for no reason. Returns at once when done() is
  // true. done() is checked when this thread counts as a sleeper already, so code that makes it true later rings.
  void sleep(int timeout_ms, const std::function<bool()>& done);
  // sleep() in parts, for a thread that sleeps at several engines, at most `most_ms`.
  struct Sleep {
    enum class State : uint8_t {
      kBusy,    // there is something to do
      kDriven,  // another thread drives it at this moment
      kBegun,   // it may sleep until one of sleep_fds() is readable; end_sleep() must follow
    };
    State state = State::kBusy;
    bool first = false;  // the first sleeper here: hears every bell
    int most_ms = 0;
  };
  Sleep begin_sleep();
  void end_sleep(const Sleep& sleep);
  // A sleeper polls these.
  std::array<pollfd, 2> sleep_fds() const { return {{{epoll_.get(), POLLIN, 0}, {shared_fd_, POLLIN, 0}}}; }
  // by_helper: the helper is about to sleep at this engine; else it has woken. A thread that begins to wait here while
  // the helper sleeps wakes it, so that peers ring for one sleeper and not for two. False: a thread waits here already,
  // so the helper need not sleep here.
  bool set_helper_asleep(bool by_helper) {
    watched_.store(by_helper, std::memory_order_seq_cst);
    return !by_helper || !has_waiters();
  }
  void wake();
  // Counts the threads in their waiting loop with this engine: while there is one, the engine needs no helper.
  void add_waiters(int by) {
    waiters_.fetch_add(by, std::memory_order_seq_cst);
    statistics_.waiting(by);
    if (watched_.load(std::memory_order_seq_cst)) wake();
  }
  bool has_waiters() const { return waiters_.load(std::memory_order_seq_cst) != 0; }
  // A thread has asked whether work of this engine is complete.
  void was_tested() { last_tested_ns_.store(config_.clock->now_ns(), std::memory_order_relaxed); }
  // Whether a thread waits here, or has tested in the last second: a program that tests in a loop waits too.
  bool is_waited_for() const;
  int sleepers() const { return sleepers_.load(std::memory_order_acquire); }

  // Ends everything; afterwards no user memory is touched. Waits for the progress lock without end. With a `give_up_ns`
  // (monotonic clock) it waits only until then, and not for a holder that has lent the lock: then it changes nothing.
  void close(int linger_ms, int64_t give_up_ns = INT64_MAX);
  // After close(), when no other call is inside: frees the memory and the sockets of transports and board.
  void free_transports();

 private:
  bool round_and_unlock() TRESTLE_RELEASE(progress_);
  // After a round. True if an operation can go on because of it. Inline: every look of a waiting thread asks.
  bool do_chores() { return staging_.has_chores() && provide_staging(); }
  bool provide_staging();
  bool poll_work() TRESTLE_REQUIRES(progress_);
  bool progress_locked() TRESTLE_REQUIRES(progress_);
  bool drain_inbox(int64_t now_ns) TRESTLE_REQUIRES(progress_);
  void hold_back(const Operation& operation, const Error& cause) TRESTLE_REQUIRES(progress_);
  Result<bool> run_operations() TRESTLE_REQUIRES(progress_);
  void finish(Operation* operation, const Failure& failure) TRESTLE_REQUIRES(progress_);
  // True if anything ended.
  bool finish_all(const Failure& failure) TRESTLE_REQUIRES(progress_);
  bool cancel_queued(const Failure& failure) TRESTLE_REQUIRES(progress_);
  bool set_failure(Failure failure);
  void tell_later();
  bool close_work(int64_t give_up_ns) TRESTLE_REQUIRES(progress_);
  void close_transports(int linger_ms) TRESTLE_REQUIRES(progress_);
  void check_deadlines(int64_t now_ns) TRESTLE_REQUIRES(progress_);
  const Operation* active(const OperationKey& operation) const TRESTLE_REQUIRES(progress_);
  const Operation* in_user_function() const TRESTLE_REQUIRES(progress_);
  std::string first_queued() TRESTLE_REQUIRES(progress_);
  const Operation* oldest() const TRESTLE_REQUIRES(progress_);
  // The stream of an operation that waits on one; nullptr: there is none.
  std::shared_ptr<Stream> stream_of(const OperationKey& operation) TRESTLE_REQUIRES(progress_);
  void announce(const Operation& operation) TRESTLE_REQUIRES(progress_);
  Status tell_awaited(int64_t now_ns) TRESTLE_REQUIRES(progress_);
  Result<bool> poll_board(Operation& operation) TRESTLE_REQUIRES(progress_);
  Error call_mismatch(const Operation& operation) TRESTLE_REQUIRES(progress_);
  Result<bool> look_for_leavers(Operation& operation) TRESTLE_REQUIRES(progress_);
  bool lock_before(int64_t deadline_ns) TRESTLE_TRY_ACQUIRE(true, progress_);
  bool prepare_sleep() TRESTLE_REQUIRES(progress_);
  bool prepare_express_sleep() TRESTLE_REQUIRES(progress_);
  void finish_sleep() TRESTLE_REQUIRES(progress_);
  Result<bool> advance(Operation& operation) TRESTLE_REQUIRES(progress_);
  Router router(const Operation& operation) TRESTLE_REQUIRES(progress_) {
    const auto& work = operation.on_device() ? config_.device.work : config_.work;
    const DevicePlace& device = config_.device;
    return {router_,
            &statistics_,
            &progress_,
            work.get(),
            &copy_left_,
            device.outbox.get(),
            device.host_outbox.get(),
            device.host_outbox_from,
            device.shares.get()};
  }
  Error with_context(Error error) const TRESTLE_REQUIRES(progress_);
  Error with_leaver(const Error& error);
  void transports_failed(Error error, int64_t now_ns) TRESTLE_REQUIRES(progress_);

  const EngineConfig config_;
  const bool crowded_;  // EngineConfig::crowded
  Patience patience_;
  Statistics statistics_;                       // outlives the operations, which count in it
  StagingPool staging_{statistics_.staging()};  // outlives the operations, which borrow from it
  struct DevicePools {
    ClaimPool staging;
    ClaimPool bounces;
  };
  const std::unique_ptr<DevicePools> device_;  // outlives the operations; nullptr: there is no device
  const std::vector<Polled*> polled_;          // those of config_ that exist
  Agreement agreement_ TRESTLE_GUARDED_BY(progress_);
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Transport*> router_;
  std::unique_ptr<Express> express_;

  ProgressLock progress_;
  std::atomic<bool> failed_{false};
  std::atomic<int64_t> failed_ns_{0};
  mutable Mutex failure_mutex_;
  const Failure no_memory_;  // of fail_without_memory()
  Failure failure_ TRESTLE_GUARDED_BY(failure_mutex_);
  std::atomic<bool> untold_{false};  // it is for tell_failure() to tell
  std::atomic<ProgressThread*> helper_{nullptr};
  std::atomic<size_t> pending_{0};
  std::atomic<int64_t> last_driven_ns_{0};
  std::atomic<int64_t> issued_ns_{0};
  std::atomic<int64_t> last_tested_ns_{0};  // 0: never
  int64_t helped_ns_ TRESTLE_GUARDED_BY(progress_) = 0;
  std::atomic<int> sleepers_{0};
  std::atomic<int> waiters_{0};
  std::atomic<bool> watched_{false};
  std::atomic<bool> somebody_left_{false};
  Mutex left_mutex_;
  std::map<int32_t, std::string> left_ TRESTLE_GUARDED_BY(left_mutex_);  // by rank: a sentence

  Mutex inbox_mutex_;
  Operation* inbox_first_ TRESTLE_GUARDED_BY(inbox_mutex_) = nullptr;
  Operation* inbox_last_ TRESTLE_GUARDED_BY(inbox_mutex_) = nullptr;  // if there is a first
  size_t inbox_size_ TRESTLE_GUARDED_BY(inbox_mutex_) = 0;
  std::atomic<bool> inbox_full_{false};

  // Under the progress lock.
  std::vector<Operation*> active_ TRESTLE_GUARDED_BY(progress_);  // ascending numbers
  uint32_t rounds_ TRESTLE_GUARDED_BY(progress_) = 0;
  // A transport has lost a peer. The mesh may still report why.
  std::optional<Error> suspicion_ TRESTLE_GUARDED_BY(progress_);
  int64_t suspected_ns_ TRESTLE_GUARDED_BY(progress_) = 0;
  LongWait wait_ TRESTLE_GUARDED_BY(progress_);  // of the oldest operation; those behind it wait as well
  // An inquiry about an overdue operation runs: end_inquiry() will come.
  bool inquired_ TRESTLE_GUARDED_BY(progress_) = false;
  bool moved_ TRESTLE_GUARDED_BY(progress_) = false;               // in the last round
  uint64_t copy_left_ TRESTLE_GUARDED_BY(progress_) = UINT64_MAX;  // of EngineConfig::copy_bytes in this round
  bool announced_sleep_ TRESTLE_GUARDED_BY(progress_) = false;     // peers ring for this rank until finish_sleep()
  bool closed_ TRESTLE_GUARDED_BY(progress_) = false;
  bool transports_closed_ TRESTLE_GUARDED_BY(progress_) = false;

  Mutex pool_mutex_;
  std::unordered_map<const Prepared*, std::vector<std::unique_ptr<Operation>>> idle_ TRESTLE_GUARDED_BY(pool_mutex_);
  std::vector<std::unique_ptr<Operation>> lent_ TRESTLE_GUARDED_BY(pool_mutex_);  // in any order: Operation::lent_at

  UniqueFd epoll_;
  int shared_fd_ = -1;  // of transports: Transport::shares_events()
  UniqueFd wake_;
};

}  // namespace trestle
