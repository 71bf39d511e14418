// Progress: who drives the engines of this process. The process's registry of engines, its waiting loop and its one
// helper thread.
//
// A thread that waits drives the engine it waits for, then helps the others: spin, yield, then sleep in one place
// (Engine::sleep). The helper thread sleeps while callers drive, and drives engines that have work but nobody else
// (unless TRESTLE_PROGRESS_THREAD=0): like a waiter it looks, yields and then sleeps until one of them can go on. It
// gives a caller some time to come and wait first, unless somebody expects a notification, which it runs: then no
// thread waits. What must be heard when nobody waits (control meshes) has a thread of its own (engine/run/watch.h),
// because the helper may be in a user's reduction function. One object per process, made at first use; any thread.
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
  // Without `helper_drives` work goes on only while a thread waits for it, tests it or is in company.
  explicit Progress(bool helper_drives) : helper_drives_(helper_drives) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Errors: the helper thread could not be started; nothing was added.
  Status add(std::shared_ptr<Engine> engine);
  // Afterwards the helper and new waits do not touch it; current waits may for one more round.
  void remove(const Engine* engine);
  // Polled by the watch thread, also where the helper drives nothing.
  Status add(std::shared_ptr<Pollable> pollable) { return watch_.add(std::move(pollable)); }
  void remove(const Pollable* pollable) { watch_.remove(pollable); }  // returns when no poll() of it runs
  // A pollable is due earlier than it was when it was polled last.
  void due_earlier() { watch_.ring(); }

  // Work was started that nobody may wait for. Drives nothing.
  void work_started();
  // A notification is a function of the user that is to run when something is complete. While one is expected the
  // helper drives at once what nobody waits for, also where it is told to drive nothing. run_notification() follows,
  // once, from any thread and under any lock of the library: the helper runs it, under none, one at a time.
  Status expect_notification();
  void run_notification(std::function<void()> notification);
  // No notification runs from now on, but the one that does.
  static void process_exits();
  // Drives until done() is true. `own` may return nullptr: then everything is driven alike.
  void wait(const std::function<bool()>& done, const std::function<std::shared_ptr<Engine>()>& own);
  // While one lives, the helper drives idle engines too: their owner may be the thread that waits here for an answer of
  // their transports to a goodbye.
  class Company {
   public:
    Company();
    ~Company();
    Company(const Company&) = delete;
    Company& operator=(const Company&) = delete;
  };
  // One round over all engines, for queries.
  void poke();

 private:
  // Weak: an engine whose communicator was destroyed goes, whoever sleeps with this list.
  using Engines = std::vector<std::weak_ptr<Engine>>;
  std::shared_ptr<const Engines> engines() const;
  Status start_helper() TRESTLE_REQUIRES(mutex_);
  void helper_loop();
  void helper_turn(class Pause& pause, std::vector<std::shared_ptr<Engine>>& driven);
  using Driven = std::vector<std::shared_ptr<Engine>>;
  // Drives what nobody else drives, and what it drove `before`. True if anything moved.
  bool helper_round(int64_t now_ns, Driven& driven);
  bool drives() const;
  bool hurries() const;
  class Attendance;
  void waited_for(const Engine& engine);
  bool anything_to_drive(const Driven& but_these) const;
  // When calls were issued last. How long the helper leaves an engine to its callers.
  int64_t look_back();
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
  std::atomic<int> companies_{0};
  std::atomic<int> expected_notifications_{0};
  std::atomic<bool> notifications_wait_{false};  // notifications_ is not empty
  std::atomic<bool> exits_{false};
  std::atomic<bool> nobody_waits_{false};  // for what is issued these days: the helper had to drive it
  int64_t last_work_ns_ = 0;               // of the helper thread, like the next
  int64_t watch_ns_ = 0;
  Mutex notifications_mutex_;
  std::vector<std::function<void()>> notifications_ TRESTLE_GUARDED_BY(notifications_mutex_);  // to be run
  std::atomic<bool> stop_{false};
  UniqueFd bell_;
  Thread helper_;
  Watch watch_;
};

}  // namespace trestle
