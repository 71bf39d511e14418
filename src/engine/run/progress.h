// Progress: which threads drive the engines of this process. It has the process's registry of engines, the waiting loop
// and one helper thread.
//
// A thread that waits drives the engine it waits for, then helps the others. It polls, yields, then sleeps in one place
// (Engine::sleep). The helper thread sleeps while callers drive. It drives engines that have work and no other driver
// (unless TRESTLE_PROGRESS_THREAD=0). Like a waiter it polls, yields and then sleeps until one of them can go on. It
// first gives a caller some time to come and wait. It does not if a notification is expected: then no thread waits, and
// the helper runs the notification. The control meshes must be heard when no thread waits. They have a thread of their
// own (engine/run/watch.h), because the helper may be in a user's reduction function. One object per process, made at
// first use; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "engine/run/engine.h"
#include "engine/run/watch.h"

namespace trestle {

class Progress {
 public:
  static Progress& process();
  // Without `helper_drives` work goes on only while a thread waits for it or tests it, or while an IdleDrive or an
  // expected notification exists.
  explicit Progress(bool helper_drives) : helper_drives_(helper_drives) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Errors: the helper thread could not be started; nothing was added.
  Status add(std::shared_ptr<Engine> engine);
  // Afterwards the helper and new waits do not touch the engine; current waits may for one more round.
  void remove(const Engine* engine);
  // The watch thread polls it, also where the helper drives nothing.
  Status add(std::shared_ptr<Pollable> pollable) { return watch_.add(std::move(pollable)); }
  void remove(const Pollable* pollable) { watch_.remove(pollable); }  // returns when no poll() of it runs
  // A pollable is now due earlier than it said when it was polled last.
  void due_earlier() { watch_.ring(); }

  // Work was started for which no thread may wait. Drives nothing.
  void work_started();
  // A notification is a user function that runs when something is complete. While one is expected, the helper drives at
  // once what no thread waits for, even if it is configured to drive nothing. Each expect_notification() is followed by
  // one run_notification(), from any thread and under any lock of the library. The helper runs the function, one at a
  // time and under no lock.
  Status expect_notification();
  void run_notification(std::function<void()> notification);
  // From now on no notification starts; one that runs already continues.
  static void process_exits();
  // Drives until done() is true. `own` returns the engine to drive first; nullptr: all engines are driven alike.
  void wait(const std::function<bool()>& done, const std::function<std::shared_ptr<Engine>()>& own);
  // While an IdleDrive exists, the helper drives idle engines too. Their owner may be the very thread that waits here
  // until their transports have answered a goodbye.
  class IdleDrive {
   public:
    IdleDrive();
    ~IdleDrive();
    IdleDrive(const IdleDrive&) = delete;
    IdleDrive& operator=(const IdleDrive&) = delete;
  };
  // One round over all engines, for a thread that does not wait. `tested`: the engine whose work the thread asks about;
  // nullptr: it asks about none.
  void poke(const std::shared_ptr<Engine>& tested);

 private:
  // Weak: an engine whose communicator was destroyed is freed, even if a sleeping thread holds this list.
  using Engines = std::vector<std::weak_ptr<Engine>>;
  std::shared_ptr<const Engines> engines() const;
  Status start_helper() TRESTLE_REQUIRES(mutex_);
  void helper_loop();
  void helper_turn(class Pause& pause, std::vector<std::shared_ptr<Engine>>& driven);
  using Driven = std::vector<std::shared_ptr<Engine>>;
  // Drives the engines that no other thread drives, and those that it drove in the round before (`driven`, replaced).
  // True if anything moved.
  bool helper_round(int64_t now_ns, Driven& driven);
  bool drives() const;
  bool drives_at_once() const;
  class WaiterMark;
  void waited_for(const Engine& engine);
  bool anything_to_drive(const Driven& but_these) const;
  // Notes when calls were issued last. Returns how long the helper leaves an engine to its callers.
  int64_t note_last_issue();
  int64_t helper_timeout_ns(const Driven& driven, int64_t now_ns);
  int sleep_ms(const Engines& engines, const Engine* own) const;
  void helper_sleep(const Driven& driven, int64_t timeout_ns);
  void run_notifications();
  void ring();
  void ring_sleeper();

  const bool helper_drives_;
  mutable Mutex mutex_;
  std::shared_ptr<const Engines> engines_ TRESTLE_GUARDED_BY(mutex_) = std::make_shared<Engines>();
  std::atomic<bool> helper_asleep_{false};
  std::atomic<bool> helper_deep_asleep_{false};  // and looks at nothing before the bell rings
  std::atomic<int> idle_drives_{0};
  std::atomic<int> expected_notifications_{0};
  std::atomic<bool> notifications_wait_{false};  // notifications_ is not empty
  std::atomic<bool> exits_{false};
  // The helper had to drive recent calls: callers do not wait for them.
  std::atomic<bool> callers_do_not_wait_{false};
  int64_t last_work_ns_ = 0;  // used by the helper thread only, like the next
  int64_t watch_ns_ = 0;
  Mutex notifications_mutex_;
  std::vector<std::function<void()>> notifications_ TRESTLE_GUARDED_BY(notifications_mutex_);  // to be run
  std::atomic<bool> stop_{false};
  UniqueFd bell_;
  Thread helper_;
  Watch watch_;
};

}  // namespace trestle
