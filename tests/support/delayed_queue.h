// DelayedQueue: a WorkQueue with its own thread, which does each piece of work after a random delay. Tests use it in
// place of a device: they find code that does not wait for the end of work.
//
// Owned by an engine. The delays repeat with the seed. Threads: see WorkQueue; its own thread ends in close().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "engine/work/work_queue.h"

namespace trestle {

class DelayedQueue : public WorkQueue {
 public:
  // Each piece of work begins 0 to most_delay_ns after the one before it has ended, or after its submission if that is
  // later. Error: no descriptors or no thread are left (kSystemError).
  static Result<std::unique_ptr<DelayedQueue>> create(uint64_t seed, int64_t most_delay_ns);
  ~DelayedQueue() override { DelayedQueue::close(INT64_MAX); }

  void submit(Work& work) override;
  bool poll() override;
  int event_fd() const override { return ended_bell_.get(); }
  bool prepare_sleep() override;
  void finish_sleep() override {}
  bool close(int64_t give_up_ns) override;

 private:
  // First in, first out; linked by Work::next, so that nothing is allocated.
  struct List {
    Work* first = nullptr;
    Work* last = nullptr;
    void push(Work& work);
    Work* pop();
  };

  DelayedQueue(uint64_t seed, int64_t most_delay_ns);
  void serve();
  Work* wait_for_work();
  void wait_until(int64_t due_ns);

  const int64_t most_delay_ns_;
  Rng rng_;                          // of the thread
  const UniqueFd submitted_bell_;    // wakes the thread
  const UniqueFd ended_bell_;        // wakes the engine's sleeper
  std::atomic<bool> closed_{false};  // no work begins any more
  std::atomic<bool> serves_{false};  // the thread has not ended
  Mutex mutex_;
  List waiting_ TRESTLE_GUARDED_BY(mutex_);
  List ended_ TRESTLE_GUARDED_BY(mutex_);
  std::atomic<bool> any_ended_{false};
  Thread thread_;
};

}  // namespace trestle
