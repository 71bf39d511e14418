// DriverWatch: notices that CUDA's driver keeps the thread that drives a communicator, and breaks the circle.
//
// A driver may let a thread wait for a stream while it holds a lock that every other call needs: a thread of the
// program that launches a kernel for the first time (which loads it), copies from memory that is not pinned, or frees
// memory. If that stream is held until a collective is done, and the collective's work cannot be submitted for the
// lock, both wait for ever, and so do all that would end them. So this watch fails the communicator and lets its
// streams go on; and if that does not suffice, all communicators of the process whose calls hold streams. It calls no
// driver, and takes no lock under which one is called.
//
// One per communicator with a device. Polled by the watch thread (engine/run/watch.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/run/watch.h"
#include "engine/work/driver_calls.h"

namespace trestle {

class Engine;

class DriverWatch : public Pollable {
 public:
  // A call of the driver that takes so many looks, a second apart, will not return. Looks are counted and not the time:
  // a process that is stopped for a while does not look.
  static constexpr uint32_t kMostLooks = 20;
  static constexpr uint32_t kFewestLooks = 5;

  // name: of the rank. timeout_ns: of its operations, which may be less; <= 0: none.
  DriverWatch(const std::shared_ptr<Engine>& engine, std::shared_ptr<DriverCalls> calls, std::string name,
              int64_t timeout_ns);
  int event_fd() const override { return -1; }
  void poll(int64_t now_ns) override;
  int64_t next_due_ns() const override { return due_ns_; }

 private:
  void break_circle();

  const std::weak_ptr<Engine> engine_;
  const std::shared_ptr<DriverCalls> calls_;
  const std::string name_;
  const uint32_t most_looks_;
  int64_t due_ns_ = 0;
  uint32_t turns_ = 0;
  uint32_t looks_ = 0;       // at which the thread was in the same call
  bool let_go_own_ = false;  // the streams of this communicator
};

}  // namespace trestle
