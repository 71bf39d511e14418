// DriverCalls: tells other threads whether the thread that drives an engine is in a call of its device's driver, and
// whether it is still the same one. GuardedQueue: a queue that counts its calls there.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
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
  // The streams have gone on, so nothing more is to be submitted. Any thread.
  void end() { over_.store(true, std::memory_order_release); }
  bool are_over() const { return over_.load(std::memory_order_acquire); }

 private:
  void turn() { turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  std::atomic<uint32_t> turns_{0};
  std::atomic<bool> over_{false};
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
    if (calls_->are_over()) close_now();
    const DriverCalls::Inside inside(*calls_);
    return queue_->poll();
  }
  int event_fd() const override { return queue_->event_fd(); }
  bool prepare_sleep() override {
    const DriverCalls::Inside inside(*calls_);
    return queue_->prepare_sleep();
  }
  void finish_sleep() override { queue_->finish_sleep(); }
  // The driver is asked inside, and work is waited for outside.
  bool close(int64_t give_up_ns) override {
    while (!close_now()) {
      if (monotonic_clock().now_ns() >= give_up_ns) return false;
      ::poll(nullptr, 0, 1);
    }
    return true;
  }

 private:
  bool close_now() {
    const DriverCalls::Inside inside(*calls_);
    return queue_->close(0);
  }

  const std::unique_ptr<WorkQueue> queue_;
  const std::shared_ptr<DriverCalls> calls_;
};

}  // namespace trestle
