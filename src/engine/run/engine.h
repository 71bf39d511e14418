// Engine: runs the operations of one rank of one communicator over its transports.
//
// Owned by the communicator (shared with whoever drives it). Entry points for any thread: submit side (operation pool,
// activate, fail) and drive side (try_progress, sleep). Everything else happens under the progress lock, which is only
// ever tried, or borrowed while a user-defined reduction runs (engine/run/progress_lock.h).
#pragma once

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
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/express/express.h"
#include "engine/run/operation.h"
#include "engine/run/patience.h"
#include "engine/run/progress_lock.h"
#include "engine/run/statistics.h"
#include "engine/stream/stream.h"
#include "transport/agreement.h"
#include "transport/transport.h"

namespace trestle {

// Where an operation stands on this rank, for another rank that waits for its part.
struct Standing {
  enum class State : uint8_t {
    kUnknown,  // not on any stream: not called yet, or done
    kQueued,   // its stream has not come to it
    kActive,
  };
  State state = State::kUnknown;
  // The operation that this rank is in: the one whose user-defined reduction runs, else that one if it is active, else
  // the oldest, if there is any.
  std::optional<OperationKey> in;
  int32_t awaited = -1;            // by `in`
  std::string description;         // of `in`
  std::shared_ptr<Stream> stream;  // of a queued one
};

struct EngineConfig {
  int32_t rank = 0;
  int32_t ranks = 1;
  std::string name;  // of the rank, for sentences
  std::vector<std::string> peer_names;
  Clock* clock = nullptr;
  std::vector<uint8_t> dimension_of;  // by rank: see Statistics
  bool crowded = false;               // ranks of this communicator share processors, by their masks
  bool sleeps = true;                 // false: nobody waits by sleep(), and no descriptors are needed
  int64_t spin_us = -1;               // TRESTLE_SPIN; negative: by whether ranks outnumber processors
  bool calls_checked = false;         // somebody compares calls, and tells of different ones better than an engine can
  // Called once, by fail(), on the failing thread; must not block or call the engine.
  std::function<void(const Error&)> on_failure;
  // Called under the progress lock when a deadline passes; must not block or call the engine. True: somebody finds out
  // who is to blame, and calls end_inquiry() in bounded time. False, or none: the engine fails at once.
  std::function<bool(const Overdue&)> on_overdue;
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // transports: owned; router[rank] points into them (nullptr: none).
  Engine(EngineConfig config, std::vector<std::unique_ptr<Transport>> transports, std::vector<Transport*> router,
         std::unique_ptr<Express> express);
  ~Engine();
  // Whether it could be made: an engine that cannot sleep for want of descriptors is of no use.
  Status opened() const;

  // ---- submit side
  // An operation of the pool for this Prepared, unbound. The caller binds it and puts it on a stream (or gives it
  // back).
  Operation* acquire(const std::shared_ptr<const Prepared>& prepared);
  void give_back(Operation* operation);
  // A Prepared has left its cache: drops the idle operations that keep it, and those that still run, or are acquired
  // later, when they are done.
  void forget(const Prepared* prepared);
  // By streams: the operation has reached the head.
  void activate(Operation& operation);
  // By streams, instead of running it: what comes before it on its stream has failed, so its input is not there. Fails
  // the communicator, and the activation that follows ends the operation. A rank that has died for the other
  // communicator may be one of this one's, whose control mesh then tells its own story: it gets a moment for that.
  void hold_back(const Operation& operation, const Error& cause);
  // Number of operations bound and not done.
  void count_pending(size_t operations) { pending_.fetch_add(operations, std::memory_order_acq_rel); }
  size_t pending() const { return pending_.load(std::memory_order_acquire); }
  // The same, without those that their streams have passed. Not for holders of the progress lock.
  size_t settled_pending();
  // What it counts; any thread, but for what Statistics says.
  Statistics& statistics() { return statistics_; }
  // Memory for data that its transports and its board hold. Any thread.
  uint64_t transport_bytes() const;
  // The express path, or nullptr. The caller must hold the progress lock (try_lock) to use it.
  Express* express() { return express_.get(); }

  // The first failure of the communicator: sticky. Later ones are ignored. Operations end with it at the next progress.
  void fail(Error error);
  // The same, of something that a function of the user did on this rank.
  void fail_of_user(Error error);
  // The same where memory could not be had. Does not throw.
  void fail_without_memory();
  std::optional<Error> failure() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // What the oldest operation waits for, "" if there is none. Not for holders of the progress lock.
  std::string oldest_operation();
  // "operation 17 (allreduce ...)", the oldest that is not done; "an operation" where none has started, or where the
  // progress lock is held, and not lent, until `deadline_ns` of the monotonic clock.
  std::string open_operation(int64_t deadline_ns);
  // That rank will publish nothing any more; `sentence` says why. What waits for it on the board ends. Any thread.
  void peer_left(int32_t rank, std::string sentence);
  // Where the operation stands here. Not for holders of the progress lock.
  Standing standing(const OperationKey& operation);
  // The answer to on_overdue: fails with it, unless the operation was completed after all. Not for holders of the lock.
  void end_inquiry(const OperationKey& operation, Error error);

  // ---- drive side
  bool try_lock() TRESTLE_TRY_ACQUIRE(true, progress_) { return progress_.try_lock(); }
  void unlock() TRESTLE_RELEASE(progress_) { progress_.unlock(); }
  // One round of progress if nobody else is at it. True if anything moved.
  bool try_progress();
  // The same by a thread that will not stay. What that took from a sleeper and left half done is the sleeper's again.
  bool help();
  // How a waiting thread should go about it.
  bool crowded() const { return crowded_; }
  Patience& patience() { return patience_; }
  bool busy() const { return pending() != 0; }
  // A call was issued: its caller may come and wait, and so drive it.
  void issued() {
    const int64_t now_ns = config_.clock->now_ns();
    issued_ns_.store(now_ns, std::memory_order_relaxed);
    if (pending() <= 1) last_driven_ns_.store(now_ns, std::memory_order_relaxed);  // calls in a row do not put it off
  }
  int64_t issued_ns() const { return issued_ns_.load(std::memory_order_relaxed); }
  int64_t last_driven_ns() const { return last_driven_ns_.load(std::memory_order_relaxed); }

  // Sleeping until something happens, at most timeout_ms. May return early for no reason; does when done() is true
  // already, which is looked at when whoever makes it true would ring.
  void sleep(int timeout_ms, const std::function<bool()>& done);
  // The same in parts, for a thread that sleeps at several engines, at most `most_ms`.
  struct Sleep {
    enum class State : uint8_t {
      kBusy,    // there is something to do
      kDriven,  // by somebody else at this moment
      kBegun,   // it may sleep until sleep_fd() is readable, and end_sleep() follows
    };
    State state = State::kBusy;
    bool first = false;  // of those that sleep here: hears every bell
    int most_ms = 0;
  };
  Sleep begin_sleep();
  void end_sleep(const Sleep& sleep);
  int sleep_fd() const { return epoll_.get(); }
  // The helper is about to sleep here, or sleeps no more. A thread that comes to wait meanwhile wakes it, so that peers
  // need not ring for both. False: one waits already.
  bool let_helper_sleep(bool by_helper) {
    watched_.store(by_helper, std::memory_order_seq_cst);
    return !by_helper || !attended();
  }
  void wake();
  // Threads that are in their waiting loop with this engine: it needs no helper.
  void attend(int by) {
    attended_.fetch_add(by, std::memory_order_seq_cst);
    statistics_.waiting(by);
    if (watched_.load(std::memory_order_seq_cst)) wake();
  }
  bool attended() const { return attended_.load(std::memory_order_seq_cst) != 0; }
  int sleepers() const { return sleepers_.load(std::memory_order_acquire); }

  // Ends everything; afterwards no memory of users is touched. Waits for the progress lock without end; with a
  // `give_up_ns` of the monotonic clock until then, and not for who has lent it: then it leaves all as it is.
  void close(int linger_ms, int64_t give_up_ns = INT64_MAX);
  // After close(), when no other call is inside: the memory and the sockets of transports and board go now.
  void free_transports();

 private:
  bool round() TRESTLE_REQUIRES(progress_);
  bool progress_locked() TRESTLE_REQUIRES(progress_);
  bool drain_inbox(int64_t now_ns) TRESTLE_REQUIRES(progress_);
  Result<bool> run_operations() TRESTLE_REQUIRES(progress_);
  void finish(Operation* operation, const Error* error) TRESTLE_REQUIRES(progress_);
  // True if anything ended.
  bool finish_all(const Error& error) TRESTLE_REQUIRES(progress_);
  bool cancel_queued(const Error& error) TRESTLE_REQUIRES(progress_);
  void retire(Operation* operation) TRESTLE_REQUIRES(progress_);
  void check_deadlines(int64_t now_ns) TRESTLE_REQUIRES(progress_);
  const Operation* active(const OperationKey& operation) const TRESTLE_REQUIRES(progress_);
  const Operation* in_user_function() const TRESTLE_REQUIRES(progress_);
  std::string first_queued() TRESTLE_REQUIRES(progress_);
  const Operation* oldest() const TRESTLE_REQUIRES(progress_);
  // Of an operation that waits there; nullptr: there is none.
  std::shared_ptr<Stream> stream_of(const OperationKey& operation) TRESTLE_REQUIRES(progress_);
  void announce(const Operation& operation) TRESTLE_REQUIRES(progress_);
  Status tell_awaited(int64_t now_ns) TRESTLE_REQUIRES(progress_);
  Error dissent(const Operation& operation) TRESTLE_REQUIRES(progress_);
  Result<bool> look_for_leavers(Operation& operation) TRESTLE_REQUIRES(progress_);
  bool lock_before(int64_t deadline_ns) TRESTLE_TRY_ACQUIRE(true, progress_);
  bool prepare_sleep() TRESTLE_REQUIRES(progress_);
  bool prepare_express_sleep() TRESTLE_REQUIRES(progress_);
  void finish_sleep() TRESTLE_REQUIRES(progress_);
  Result<bool> advance(Operation& operation) TRESTLE_REQUIRES(progress_);
  Router router() { return {router_, &statistics_, &progress_}; }
  Error with_context(Error error) const TRESTLE_REQUIRES(progress_);
  Error with_leaver(const Error& error);
  void transports_failed(Error error, int64_t now_ns) TRESTLE_REQUIRES(progress_);
  void suspect_held_back() TRESTLE_REQUIRES(progress_);

  const EngineConfig config_;
  const bool crowded_;  // ranks outnumber processors on this host
  Patience patience_;
  Statistics statistics_;  // operations count in it to their end
  Agreement agreement_ TRESTLE_GUARDED_BY(progress_);
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Transport*> router_;
  std::unique_ptr<Express> express_;
  Error no_memory_;  // made ahead: of fail_without_memory()

  ProgressLock progress_;
  std::atomic<bool> failed_{false};
  mutable Mutex failure_mutex_;
  std::optional<Error> failure_ TRESTLE_GUARDED_BY(failure_mutex_);
  std::optional<Error> held_back_ TRESTLE_GUARDED_BY(failure_mutex_);  // of hold_back(), to be suspected
  std::atomic<bool> holds_back_{false};
  std::atomic<size_t> pending_{0};
  std::atomic<int64_t> last_driven_ns_{0};
  std::atomic<int64_t> issued_ns_{0};
  int64_t helped_ns_ TRESTLE_GUARDED_BY(progress_) = 0;
  std::atomic<int> sleepers_{0};
  std::atomic<int> attended_{0};
  std::atomic<bool> watched_{false};
  std::atomic<bool> somebody_left_{false};
  Mutex left_mutex_;
  std::map<int32_t, std::string> left_ TRESTLE_GUARDED_BY(left_mutex_);  // by rank: a sentence

  Mutex inbox_mutex_;
  std::vector<Operation*> inbox_ TRESTLE_GUARDED_BY(inbox_mutex_);
  std::atomic<bool> inbox_full_{false};

  // Under the progress lock.
  std::vector<Operation*> active_ TRESTLE_GUARDED_BY(progress_);  // ascending numbers
  std::vector<Operation*> drained_ TRESTLE_GUARDED_BY(progress_);
  uint32_t rounds_ TRESTLE_GUARDED_BY(progress_) = 0;
  std::optional<Error> suspicion_ TRESTLE_GUARDED_BY(progress_);  // a transport lost a peer: why may be known elsewhere
  int64_t suspected_ns_ TRESTLE_GUARDED_BY(progress_) = 0;
  bool inquired_ TRESTLE_GUARDED_BY(progress_) = false;         // about an overdue operation: end_inquiry() will come
  bool announced_sleep_ TRESTLE_GUARDED_BY(progress_) = false;  // peers ring: finish_sleep() is to come
  bool closed_ TRESTLE_GUARDED_BY(progress_) = false;
  bool transports_closed_ TRESTLE_GUARDED_BY(progress_) = false;

  Mutex pool_mutex_;
  std::unordered_map<const Prepared*, std::vector<std::unique_ptr<Operation>>> idle_ TRESTLE_GUARDED_BY(pool_mutex_);
  std::unordered_map<Operation*, std::unique_ptr<Operation>> lent_ TRESTLE_GUARDED_BY(pool_mutex_);

  UniqueFd epoll_;
  UniqueFd wake_;
};

}  // namespace trestle
