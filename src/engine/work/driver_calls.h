// DriverCalls: tells other threads whether the thread that drives an engine is in a call of its device's driver, and
// whether it is still the same one. GuardedQueue: a queue that counts its calls there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/work/work_queue.h"

namespace trestle {

class DriverCalls {
 public:
  DriverCalls() = default;
  DriverCalls(const DriverCalls&) = delete;
  DriverCalls& operator=(const DriverCalls&) = delete;

  // While it exists, the thread may be in the driver. One at a time: under the progress lock.
  class Inside {
   public:
    explicit Inside(DriverCalls& calls) : calls_(calls) { calls_.turn(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { calls_.turn(); }

   private:
    DriverCalls& calls_;
  };

  // Odd: a thread is inside. Another number than before: it has left since. Any thread.
  uint32_t turns() const { return turns_.load(std::memory_order_relaxed); }

 private:
  void turn() { turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  std::atomic<uint32_t> turns_{0};
};

class GuardedQueue : public WorkQueue {
 public:
  GuardedQueue(std::unique_ptr<WorkQueue> queue, std::shared_ptr<DriverCalls> calls)
      : queue_(std::move(queue)), calls_(std::move(calls)) {}
  void submit(Work& work) override {
    const DriverCalls::Inside inside(*calls_);
    queue_->submit(work);
  }
  bool poll() override {
    const DriverCalls::Inside inside(*calls_);
    return queue_->poll();
  }
  int event_fd() const override { return queue_->event_fd(); }
  bool prepare_sleep() override {
    const DriverCalls::Inside inside(*calls_);
    return queue_->prepare_sleep();
  }
  void finish_sleep() override { queue_->finish_sleep(); }
  bool close(int64_t give_up_ns) override { return queue_->close(give_up_ns); }  // waits for work as long as it takes

 private:
  const std::unique_ptr<WorkQueue> queue_;
  const std::shared_ptr<DriverCalls> calls_;
};

}  // namespace trestle
