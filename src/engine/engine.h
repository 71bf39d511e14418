// Engine: runs the operations of one rank of one communicator over its transports.
//
// Owned by the communicator (shared with whoever drives it). Entry points for any thread: submit side (operation pool,
// activate, fail) and drive side (try_progress, sleep). Everything else happens under the progress lock, which is only
// ever tried.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/express.h"
#include "engine/operation.h"
#include "engine/stream.h"
#include "transport/agreement.h"
#include "transport/transport.h"

namespace trestle {

struct EngineConfig {
  int32_t rank = 0;
  int32_t ranks = 1;
  std::string name;  // of the rank, for sentences
  std::vector<std::string> peer_names;
  Clock* clock = nullptr;
  int32_t local_ranks = 1;  // of this communicator on this host, this one included
  bool sleeps = true;       // false: nobody waits by sleep(), and no descriptors are needed
  int64_t spin_us = -1;     // TRESTLE_SPIN; negative: by whether ranks outnumber processors
  // Called once, by fail(), on the failing thread; must not block or call the engine.
  std::function<void(const Error&)> on_failure;
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
  // Number of operations bound and not done.
  void count_pending(size_t operations) { pending_.fetch_add(operations, std::memory_order_acq_rel); }
  size_t pending() const { return pending_.load(std::memory_order_acquire); }
  // The express path, or nullptr. The caller must hold the progress lock (try_lock) to use it.
  Express* express() { return express_.get(); }

  // The first failure of the communicator: sticky. Later ones are ignored. Operations end with it at the next progress.
  void fail(Error error);
  std::optional<Error> failure() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // What the oldest operation waits for, "" if there is none. Not for holders of the progress lock.
  std::string oldest_operation();

  // ---- drive side
  bool try_lock() { return !locked_.exchange(true, std::memory_order_acquire); }
  void unlock() { locked_.store(false, std::memory_order_release); }
  // One round of progress if nobody else is at it. True if anything moved.
  bool try_progress();
  // How a waiting thread should go about it.
  bool crowded() const { return crowded_; }
  bool awaits_express() const { return awaited_express_.load(std::memory_order_relaxed) != 0; }
  int64_t spin_us() const { return config_.spin_us; }
  bool busy() const { return pending() != 0; }
  int64_t last_driven_ns() const { return last_driven_ns_.load(std::memory_order_relaxed); }

  // Sleeping until something happens, at most timeout_ms. May return early for no reason; does when done() is true
  // already, which is looked at when whoever makes it true would ring.
  void sleep(int timeout_ms, const std::function<bool()>& done);
  void wake();
  // Threads that are in their waiting loop with this engine: it needs no helper.
  void attend(int by) { attended_.fetch_add(by, std::memory_order_acq_rel); }
  bool attended() const { return attended_.load(std::memory_order_acquire) != 0; }
  int sleepers() const { return sleepers_.load(std::memory_order_acquire); }

  // Ends everything; afterwards no memory of users is touched. Waits for the progress lock (its holders never block).
  void close(int linger_ms);

 private:
  bool progress_locked();
  bool drain_inbox(int64_t now_ns);
  Result<bool> run_operations();
  void finish(Operation* operation, const Error* error);
  // True if anything ended.
  bool finish_all(const Error& error);
  bool cancel_queued(const Error& error);
  void retire(Operation* operation);
  void check_deadlines(int64_t now_ns);
  void announce(const Operation& operation);
  Status tell_awaited(int64_t now_ns);
  Error dissent(const Operation& operation) const;
  bool prepare_sleep();
  Result<bool> advance(Operation& operation);
  Error with_context(Error error) const;
  void transports_failed(Error error, int64_t now_ns);

  const EngineConfig config_;
  const bool crowded_;  // ranks outnumber processors on this host
  Agreement agreement_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Transport*> router_;
  std::unique_ptr<Express> express_;

  std::atomic<bool> locked_{false};
  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  std::optional<Error> failure_;
  std::atomic<size_t> pending_{0};
  std::atomic<int64_t> last_driven_ns_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<int> attended_{0};
  std::atomic<int> awaited_express_{0};  // active operations that no descriptor announces

  std::mutex inbox_mutex_;
  std::vector<Operation*> inbox_;
  std::atomic<bool> inbox_full_{false};

  // Under the progress lock.
  std::vector<Operation*> active_;  // ascending numbers
  std::vector<Operation*> drained_;
  uint32_t rounds_ = 0;
  std::optional<Error> suspicion_;  // a transport lost a peer: why may be known elsewhere
  int64_t suspected_ns_ = 0;
  bool closed_ = false;
  bool transports_closed_ = false;

  std::mutex pool_mutex_;
  std::unordered_map<const Prepared*, std::vector<std::unique_ptr<Operation>>> idle_;
  std::unordered_map<Operation*, std::unique_ptr<Operation>> lent_;

  UniqueFd epoll_;
  UniqueFd wake_;
};

}  // namespace trestle
