// Streams and events on the host: in-order queues of operations.
//
// Shared by the API's handles, the operations on them and waiting streams (shared_ptr). Any thread. A stream never
// drives progress itself: it hands operations to their engines when they reach its head, and engines tell it when they
// are done.
//
// A failure stays with its stream until it has been reported. Until then every record made behind it carries it, and a
// stream that waits for such a record takes it over. Operations behind it do not run: their input does not exist, and
// ranks that do not know of the failure would take what these operations send for data.
//
// A stream may have an outer stream, of a device. Its calls then have places there too: none begins before the outer
// stream has come to the call's place, and the outer stream goes no further until the call is done or has failed. A
// thread of the process (engine/run/stream_poller.h) asks where the outer streams are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/overdue.h"
#include "base/result.h"
#include "engine/work/outer_stream.h"

namespace trestle {

class Engine;
class Operation;
class Stream;

// A function that runs once when a record is complete. It gets the record's failure, if any, and the engine that had
// used the stream last (empty: it is gone, or there was none).
using Notification = std::function<void(const Failure& failure, const std::weak_ptr<Engine>& user)>;

// One record of an event: a place in a stream. It is complete when everything before it there is done or has failed.
class Recording {
 public:
  // user: the engine that used the stream last.
  Recording(std::weak_ptr<Stream> stream, std::weak_ptr<Engine> user)
      : stream_(std::move(stream)), user_(std::move(user)) {}
  // If the stream never reached the record, its notifications run with kAborted.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  bool complete() const { return complete_.load(std::memory_order_acquire); }
  // Valid when complete: the first failure of the work before the record that had not been reported by then.
  const Failure& failure() const { return failure_; }
  // The stream of the record, or nullptr.
  std::shared_ptr<Stream> stream() const { return stream_.lock(); }
  // Makes the helper thread run the function when this is complete, or soon if it is complete already
  // (Progress::run_notification). Error: there is no helper, and the function is not run.
  Status notify(Notification notification);

 private:
  friend class Stream;
  // Streams that wait.
  using Waiters = std::list<std::weak_ptr<Stream>>;
  // Called by its stream, which has reached it. Returns the streams that wait for it.
  Waiters finish(Failure failure);
  // A notification that waits, made when it was asked for.
  struct Pending {
    struct End {
      Failure failure;
      std::weak_ptr<Engine> user;
    };
    std::shared_ptr<End> end;
    std::list<std::function<void()>> run;  // one, which reads the end
  };
  void run(std::vector<Pending> notifications);
  // True if it is complete; else `waiter` moves to those that wait, unless it did before.
  bool await(Waiters& waiter);

  const std::weak_ptr<Stream> stream_;
  const std::weak_ptr<Engine> user_;
  Mutex mutex_;
  std::atomic<bool> complete_{false};
  Failure failure_;  // its stream's failure; valid once complete_
  Waiters waiters_ TRESTLE_GUARDED_BY(mutex_);
  std::vector<Pending> notifications_ TRESTLE_GUARDED_BY(mutex_);
};

// An event stands for its last record.
class Event {
 public:
  // Stream::record_outer(). Error: it has refused; the event stands for what it stood for before.
  Status record_outer(Stream& stream);
  // nullptr: never recorded.
  std::shared_ptr<Recording> last() const;

 private:
  void stands_for(std::shared_ptr<Recording> recording);
  mutable Mutex mutex_;
  std::shared_ptr<Recording> last_ TRESTLE_GUARDED_BY(mutex_);
};

// Operations that a stream hands to their engines. One operation alone needs no memory.
struct ToActivate {
  Operation* first = nullptr;
  std::vector<Operation*> others;

  void assign(std::span<Operation* const> operations);
  void drop(const Operation* operation);
};

// One item of a stream: operations that progress together, or a record, or the wait for a record. Streams use items
// again, with the memory of their lists.
struct StreamItem {
  // Operations that are not done. Never empty in an item that began with some.
  std::vector<Operation*> operations;
  ToActivate to_activate;  // operations of this item that are not active yet
  std::shared_ptr<Recording> record;
  std::shared_ptr<Recording> wait;
  std::list<std::weak_ptr<Stream>> waiter;  // the stream itself, until `wait` has it
  Failure failure;                          // of one of the operations; becomes the stream's when it passes the item
  enum class Counted : uint8_t { kNot, kOfUser, kOfOthers };
  Counted counted = Counted::kNot;  // in its stream's only_user_
  OuterStream::Ticket outer;        // its place in the outer stream; without the mark once that was reached
  bool reserved = false;            // a StreamEntry holds it: nobody knows yet what it will be

  void clear();
};

// A place in a stream, and in its outer stream, that a call has taken before it can no longer be refused. If nothing is
// put there, the place is given up. One thread.
class StreamEntry {
 public:
  StreamEntry() = default;
  StreamEntry(StreamEntry&& other) noexcept
      : stream_(std::move(other.stream_)), item_(std::exchange(other.item_, nullptr)) {}
  StreamEntry(const StreamEntry&) = delete;
  StreamEntry& operator=(const StreamEntry&) = delete;
  ~StreamEntry();
  // For one that has no place.
  void take(StreamEntry&& other) {
    stream_ = std::move(other.stream_);
    item_ = std::exchange(other.item_, nullptr);
  }

 private:
  friend class Stream;
  StreamEntry(std::shared_ptr<Stream> stream, StreamItem* item) : stream_(std::move(stream)), item_(item) {}
  std::shared_ptr<Stream> stream_;
  StreamItem* item_ = nullptr;  // nullptr: no place, or it was used
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  // A stream whose calls are ordered on that one. Error: the thread that asks where it is could not be started.
  static Result<std::shared_ptr<Stream>> on(std::unique_ptr<OuterStream> outer);
  bool has_outer() const { return outer_ != nullptr; }
  int outer_device() const { return outer_->device(); }  // only with an outer stream

  // The lane that the outer stream is being captured on; nullptr: it is not, or there is none. During a capture enter()
  // is refused.
  Result<std::shared_ptr<CaptureLane>> captured_lane() const {
    if (outer_ == nullptr) return std::shared_ptr<CaptureLane>();
    return outer_->captured_lane();
  }
  // Takes a place for these calls in that graph. The result is the stream of their launches. enter() takes the place of
  // a launch that has arrived, and holds it until the calls are done.
  Result<std::shared_ptr<Stream>> capture(std::shared_ptr<CaptureLane> lane, std::shared_ptr<GraphCalls> calls);
  // Only on the stream of launches: lets one go on for which nothing is queued.
  void let_launch_go_on() { outer_->open(0); }

  // Takes the place of a call that comes next. With an outer stream this must be done first, and may be refused;
  // without one it does nothing.
  Result<StreamEntry> enter() { return outer_ == nullptr ? StreamEntry() : enter(true, true); }
  // enter() for a call of this engine that can go into the outer stream as a kernel (OuterStream::put_kernel). It does
  // if there are kernels, and if all that is queued here are calls of this engine: if one of another engine failed, the
  // kernel would not know, and its input would not exist. may_enter(): whether it would be refused. After that only a
  // failure of the driver refuses. Only with an outer stream.
  Status may_enter() { return outer_->may_put(); }
  Result<StreamEntry> enter_kernel(const Engine& engine, const std::function<Status(const OuterPlace&)>& submit);
  // As enqueue() without a place, but nothing is allocated for the item itself. The place stays with the caller if
  // nothing is appended.
  void enqueue(std::span<Operation* const> operations, StreamEntry&& entry);
  // Appends; activates the operations that reach the head. Part of issuing a call: for one operation it allocates
  // nothing, unless more items are queued than before.
  //
  // This and the next two append what they are given, or throw std::bad_alloc and append nothing. What is queued moves
  // on without memory: an exception would lose what comes next. For that there are lists, and failures are shared.
  void enqueue(std::span<Operation* const> operations);
  void enqueue(std::initializer_list<Operation*> operations) {
    enqueue(std::span<Operation* const>(operations.begin(), operations.size()));
  }
  // Complete when the calls before it are, wherever the outer stream is.
  std::shared_ptr<Recording> record();
  // nullptr: nothing to wait for.
  void wait_for(std::shared_ptr<Recording> recording);
  // As record() and wait_for(), but also for the outer stream: the record includes what was submitted there before, and
  // what is submitted there later also waits. Without an outer stream they do the same as those.
  Result<std::shared_ptr<Recording>> record_outer();
  Status wait_outer(std::shared_ptr<Recording> recording);
  // An operation of the engine comes next, or ran at once because the stream was idle.
  void used_by(Engine& engine);

  // Called by the engine when an operation of the head item is done (error: it failed).
  void operation_done(Operation& operation, const Failure& failure);

  // Called by a failed engine: removes an operation that waits behind others. False if it has been activated: then it
  // ends by itself.
  bool cancel(Operation& operation, const Failure& failure);

  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Success if calls are taken: there is no failure before them.
  Status check_open() const {
    if (failed()) [[unlikely]]
      return refusal();
    return {};
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // The first failure that was not reported yet. It is then cleared, unless items behind it are still queued.
  std::optional<Error> tell_failure();
  // An engine whose progress moves the head, or nullptr.
  std::shared_ptr<Engine> head_engine();
  // What the stream waits for: an operation, perhaps of another stream that it waits for. No engine: nothing holds it
  // up.
  struct Head {
    std::shared_ptr<Engine> engine;
    OperationKey operation;
    int outer_device = -1;  // of the outer stream that has not come to the operation yet; -1: it has, or there is none
  };
  Head head();

  // Opens the gates of the calls of this engine that are next, which stay queued; nullptr: of all places, also of waits
  // and of calls that are being made, and the stream fails: what is before these has not been done.
  void let_outer_go(const Engine* only, const Error& why);
  // Whether these two call no driver, nor wait for a thread that does.
  bool can_be_let_go() const { return outer_ != nullptr && outer_->has_words(); }
  // Those of the calls that are queued.
  std::vector<std::shared_ptr<Engine>> engines() const;
  // For the StreamPoller. Whether the head waits for the outer stream; asks where that is, and moves on.
  bool waits_for_outer() const { return waits_for_outer_.load(std::memory_order_seq_cst); }
  void ask_outer() { pump(); }
  // Finds out whether the outer stream has failed. May take the driver's time.
  void check_outer();

 private:
  friend class StreamEntry;
  explicit Stream(std::unique_ptr<OuterStream> outer) : outer_(std::move(outer)) {}
  // What follows from a change of a stream. Done after its lock was released.
  struct Consequences {
    std::list<std::weak_ptr<Stream>> to_wake;
    ToActivate to_activate;
    Failure held_back_by;  // if set, to_activate must not run
  };
  std::shared_ptr<Stream> look(Head& head);
  // Appends an item that `fill` makes of an empty one. If `fill` throws, it has not changed the item.
  template <class F>
  void push(F&& fill);
  // Does the same for the item of an entry, which no other thread changes.
  template <class F>
  void fill_in(StreamEntry& entry, F&& fill) {
    Consequences then;
    {
      const MutexLock lock(mutex_);
      fill(*entry.item_);
      entry.item_->reserved = false;
      count(*std::exchange(entry.item_, nullptr));
      then = pump_locked();
    }
    carry_out(then);
  }
  Result<StreamEntry> enter(bool mark, bool gate);
  template <class Put>
  Result<StreamEntry> enter_by(Put&& put);
  bool takes_kernels_of(const Engine& engine) const;
  void count(StreamItem& item) TRESTLE_REQUIRES(mutex_);
  void discount(StreamItem& item) TRESTLE_REQUIRES(mutex_);
  void give_up(StreamItem& item);
  void need_not_arrive(StreamItem& item) TRESTLE_REQUIRES(mutex_);
  void put_in(StreamItem& item, std::span<Operation* const> operations);
  void outer_failed(Error error) TRESTLE_REQUIRES(mutex_);
  bool has_arrived(StreamItem& head) TRESTLE_REQUIRES(mutex_);
  // Runs what can run, from the head on.
  void pump();
  static void carry_out(const Consequences& then);
  Consequences pump_locked() TRESTLE_REQUIRES(mutex_);
  void pass_head() TRESTLE_REQUIRES(mutex_);
  void take_over(Failure failure) TRESTLE_REQUIRES(mutex_);
  Status refusal() const;
  std::weak_ptr<Engine> last_user() const;

  const std::unique_ptr<OuterStream> outer_;  // or nullptr
  // Held while the outer stream takes something, so that places there and here have one order. It may be held until the
  // outer stream has moved on.
  Mutex entry_mutex_ TRESTLE_ACQUIRED_BEFORE(mutex_);
  std::atomic<bool> waits_for_outer_{false};
  mutable Mutex mutex_;
  std::list<StreamItem> items_ TRESTLE_GUARDED_BY(mutex_);
  std::list<StreamItem> spare_ TRESTLE_GUARDED_BY(mutex_);  // cleared; kept for reuse, at most kMostSpare
  bool head_active_ TRESTLE_GUARDED_BY(mutex_) = false;
  // The engine of the items that count as kOfUser, how many they are, and how many count as kOfOthers. Records do not
  // count.
  const Engine* only_user_ TRESTLE_GUARDED_BY(mutex_) = nullptr;
  size_t of_user_ TRESTLE_GUARDED_BY(mutex_) = 0;
  size_t of_others_ TRESTLE_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<Engine> last_user_ TRESTLE_GUARDED_BY(mutex_);
  std::atomic<const Engine*> last_user_key_{nullptr};  // last_user_ as a key, never dereferenced
  // Of the outer stream: the place of its failure, and that place once it has failed.
  const std::shared_ptr<Error> outer_error_ = outer_ == nullptr ? nullptr : std::make_shared<Error>();
  Failure outer_failure_ TRESTLE_GUARDED_BY(mutex_);
  std::atomic<size_t> pending_{0};
  std::atomic<bool> failed_{false};  // whether failure_ is set
  Failure failure_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
