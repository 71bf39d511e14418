// Progress: which threads drive the engines of this process. It has the process's registry of engines, the waiting loop
// and the helper threads (engine/run/progress_thread.h).
//
// A thread that waits drives the engine it waits for, then helps the others. It polls, yields, then sleeps in one place
// (Engine::sleep). The helpers drive what no thread waits for (unless TRESTLE_PROGRESS_THREAD=0). Each engine belongs
// to one of them. The first one runs the notifications. A helper starts with its first engine. The control meshes must
// be heard when no thread waits. They have a thread of their own (engine/run/watch.h), because a helper may be in a
// user's reduction function. One object per process, made at first use; any thread.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "engine/run/engine_list.h"
#include "engine/run/patience.h"
#include "engine/run/progress_places.h"
#include "engine/run/progress_thread.h"
#include "engine/run/watch.h"

namespace trestle {

class Progress {
 public:
  static Progress& process();
  // Without `helpers_drive` work goes on only while a thread waits for it or tests it, or while an IdleDrive or an
  // expected notification exists.
  explicit Progress(bool helpers_drive, const ProgressPlaces& places = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Gives the engine to the helper that choose_helper() finds for the calling thread, else to the one with the fewest.
  // Errors: the helper could not be started; nothing was added.
  Status add(const std::shared_ptr<Engine>& engine);
  // Afterwards helpers and new waits do not touch the engine; current rounds and waits may for one more round.
  void remove(Engine* engine);
  // The watch thread polls it, also where the helper drives nothing.
  Status add(std::shared_ptr<Pollable> pollable) { return watch_.add(std::move(pollable)); }
  void remove(const Pollable* pollable) { watch_.remove(pollable); }  // returns when no poll() of it runs
  // A pollable is now due earlier than it said when it was polled last.
  void due_earlier() { watch_.ring(); }

  // A call of the engine was issued, for which no thread may wait. Its cost does not depend on the call's size. Drives
  // nothing, touches no other helper, and wakes the helper only if nothing else does.
  static void call_issued(const Engine& engine) {
    if (ProgressThread* thread = engine.helper()) thread->call_issued(engine);
  }
  // Work of the engine was started for which no thread may wait. Drives nothing, and touches no other helper.
  static void work_started(const Engine& engine) {
    if (ProgressThread* thread = engine.helper()) thread->work_started();
  }
  // A notification is a user function that runs when something is complete. While one is expected, the helpers drive at
  // once what no thread waits for, even if they are configured to drive nothing. Each expect_notification() is followed
  // by one run_notification(), from any thread and under any lock of the library. The first helper runs the function,
  // one at a time and under no lock.
  Status expect_notification();
  // A list of one function, so that it takes no memory.
  void run_notification(std::list<std::function<void()>> notification);
  // From now on no notification starts; one that runs already continues.
  static void process_exits();
  // Drives until done() is true. `own` returns the engine to drive first; nullptr: all engines are driven alike.
  void wait(const std::function<bool()>& done, const std::function<std::shared_ptr<Engine>()>& own);
  // While an IdleDrive exists, the helpers drive idle engines too. Their owner may be the very thread that waits, until
  // their transports have answered a goodbye, or in a device's driver.
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
  class WaiterMark;
  std::shared_ptr<const EngineList> engines() const;
  size_t helper_for(const Engine& engine) const;
  void ring_sleepers();
  int sleep_ms(const EngineList& engines, const Engine* own) const;

  const ProgressPlaces places_;
  ProgressDuties duties_;
  Patience common_patience_{PatienceLimits{.learns = false}};  // of waits whose engine is not known
  mutable Mutex mutex_;
  std::shared_ptr<const EngineList> engines_ TRESTLE_GUARDED_BY(mutex_) = std::make_shared<EngineList>();
  Watch watch_;
  std::vector<std::unique_ptr<ProgressThread>> helpers_;  // at least one; constant
};

}  // namespace trestle
