// Watch: the process's thread for events that must be noticed at once, whatever else the process does: the control
// meshes. It drives no engine. So no user function ever runs on it and delays it.
//
// Owned by the process's Progress. Any thread. The thread starts with the first pollable and sleeps while none has
// anything to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "base/unique_fd.h"

namespace trestle {

// An object with a descriptor. It is polled when the descriptor is readable, or when its time has come. poll() runs no
// user function and never waits for one.
class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual int event_fd() const = 0;
  virtual void poll(int64_t now_ns) = 0;
  virtual int64_t next_due_ns() const = 0;
};

class Watch {
 public:
  Watch() = default;
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Errors: the thread could not be started; nothing was added.
  Status add(std::shared_ptr<Pollable> pollable);
  void remove(const Pollable* pollable);  // returns when no poll() of it runs
  // Makes the thread ask each pollable again when it is due.
  void ring();

 private:
  Status start() TRESTLE_REQUIRES(start_mutex_);
  void loop();
  int64_t poll_all(int64_t now_ns);
  void sleep(int64_t timeout_ns);

  Mutex start_mutex_;
  bool started_ TRESTLE_GUARDED_BY(start_mutex_) = false;
  Mutex pollables_mutex_;  // held while the pollables are polled
  std::vector<std::shared_ptr<Pollable>> pollables_ TRESTLE_GUARDED_BY(pollables_mutex_);
  std::atomic<bool> stop_{false};
  UniqueFd bell_;
  Thread thread_;
};

}  // namespace trestle
