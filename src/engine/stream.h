// Streams and events on the host: in-order queues of operations.
//
// Shared by the API's handles, the operations on them and waiting streams (shared_ptr). Any thread. A stream never
// drives progress itself: it hands operations to their engines when they reach its head, and engines tell it when they
// are done.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace trestle {

class Engine;
class Operation;
class Stream;

class Event {
 public:
  bool complete() const { return complete_.load(std::memory_order_acquire); }
  // Where it was last recorded, or nullptr.
  std::shared_ptr<Stream> stream();

 private:
  friend class Stream;
  Mutex mutex_;
  std::atomic<bool> complete_{true};
  uint64_t generation_ TRESTLE_GUARDED_BY(mutex_) = 0;     // of the last record
  std::vector<uint64_t> open_ TRESTLE_GUARDED_BY(mutex_);  // generations that no stream has reached yet
  std::weak_ptr<Stream> recorded_ TRESTLE_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Stream>> waiters_ TRESTLE_GUARDED_BY(mutex_);
};

// What a stream runs as one: operations that progress together, or the record of an event, or the wait for one.
struct StreamItem {
  std::vector<Operation*> operations;  // that are not done; never empty in an item that began with some
  std::shared_ptr<Event> record;
  std::shared_ptr<Event> wait;
  uint64_t generation = 0;  // of the event
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // Appends; activates what reaches the head.
  void enqueue(std::vector<Operation*> operations);
  void record(const std::shared_ptr<Event>& event);
  void wait_for(const std::shared_ptr<Event>& event);

  // By the engine, when an operation of the head item is done (error: it failed).
  void operation_done(Operation& operation, const Error* error);

  // By a failed engine: takes back an operation that waits behind others. False if it has been activated: then it ends
  // by itself.
  bool cancel(Operation& operation, const Error& error);

  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Failure of an operation since the last call.
  std::optional<Error> take_error();
  // An engine whose progress moves the head, or nullptr.
  std::shared_ptr<Engine> head_engine();

 private:
  void push(std::unique_ptr<StreamItem> item);
  // Runs what can run from the head on. Afterwards, without the lock, wakes the streams that waited for recorded
  // events.
  void pump();
  bool pump_locked(std::vector<std::weak_ptr<Stream>>& to_wake, std::vector<Operation*>& to_activate)
      TRESTLE_REQUIRES(mutex_);
  bool await(StreamItem& item) TRESTLE_REQUIRES(mutex_);

  Mutex mutex_;
  std::deque<std::unique_ptr<StreamItem>> items_ TRESTLE_GUARDED_BY(mutex_);
  bool head_active_ TRESTLE_GUARDED_BY(mutex_) = false;
  std::atomic<size_t> pending_{0};
  std::optional<Error> error_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
