// ProgressThread: a helper thread of Progress. It drives those of its engines that have work and no other driver.
//
// A process may have several. Each has engines of its own, so that none waits for a user's function that another one
// runs, and each node's memory is moved by that node's processors. A thread sleeps while callers drive. Like a waiter
// it polls, yields and then sleeps until one of its engines can go on. It first gives a caller some time to come and
// wait. It does not if a notification is expected: then no thread waits. Owned by Progress; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "engine/run/engine_list.h"
#include "engine/run/notifications.h"

namespace trestle {

// What Progress tells all its helpers.
struct ProgressDuties {
  explicit ProgressDuties(bool drive) : always(drive) {}
  bool drive() const { return always || idle_drives.load(std::memory_order_seq_cst) != 0 || notifications.expected(); }

  const bool always;                // false: it drives only while idle_drives is not 0, or a notification is expected
  std::atomic<int> idle_drives{0};  // while it is not 0, idle engines are driven too
  Notifications notifications;
};

class ProgressThread {
 public:
  struct Place {
    size_t number = 0;            // among the helpers. The first one runs the notifications
    std::vector<int> processors;  // ascending. Empty: the thread is not bound
    std::vector<int> nodes;       // the NUMA nodes of these processors, ascending; empty: not chosen by node
    std::string of;               // for the log: how many there are at most, and why
  };
  ProgressThread(ProgressDuties& duties, Place place) : duties_(duties), place_(std::move(place)) {}
  ~ProgressThread() { stop(); }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Does nothing if it runs already. Errors: the system's limits.
  Status start();
  void stop();  // and waits for its end
  void add(const std::shared_ptr<Engine>& engine);
  size_t engine_count() const { return engines()->size(); }
  // Afterwards it does not touch the engine, but for the round that may be running.
  void remove(const Engine* engine);

  // A call of the engine was issued, for which no thread may wait. Drives nothing. Makes no system call while a thread
  // sleeps at the engine: activating an operation wakes that thread, and a call behind others wakes nobody.
  void call_issued(const Engine& engine);
  // Work was started for which no thread may wait. Drives nothing.
  void work_started();
  // A thread has come to wait for this engine.
  void waited_for(const Engine& engine);
  // It sees everything done before this call, even if it sleeps.
  void ring_sleeper();

 private:
  using Driven = std::vector<std::shared_ptr<Engine>>;
  std::shared_ptr<const EngineList> engines() const;
  bool notifications_due() const { return place_.number == 0 && duties_.notifications.due(); }
  void settle();
  void loop();
  void turn(class Pause& pause, Driven& driven);
  // Drives the engines that no other thread drives, and those that it drove in the round before (`driven`, replaced).
  // True if anything moved.
  bool round(int64_t now_ns, Driven& driven);
  bool drives_at_once() const;
  bool anything_to_drive(const Driven& but_these) const;
  // Notes when calls were issued last. Returns how long an engine is left to its callers.
  int64_t note_last_issue();
  int64_t timeout_ns(const Driven& driven, int64_t now_ns);
  void sleep(const Driven& driven, int64_t timeout_ns);
  void ring_if_needed(bool callers_do_not_wait);
  void ring();

  ProgressDuties& duties_;
  const Place place_;
  mutable Mutex mutex_;
  std::shared_ptr<const EngineList> engines_ TRESTLE_GUARDED_BY(mutex_) = std::make_shared<EngineList>();
  bool started_ TRESTLE_GUARDED_BY(mutex_) = false;
  // False also where it was rung and has not woken yet: then the ring comes, or has come.
  std::atomic<bool> asleep_{false};
  std::atomic<bool> deep_asleep_{false};  // for long: until the bell rings, or an engine at which it sleeps moves
  // It had to drive recent calls: callers do not wait for them.
  std::atomic<bool> callers_do_not_wait_{false};
  int64_t last_work_ns_ = 0;  // used by the thread only, like the next
  int64_t watch_ns_ = 0;
  std::atomic<bool> stop_{false};
  UniqueFd bell_;
  Thread thread_;
};

}  // namespace trestle
