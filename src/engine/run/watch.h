// Watch: the thread of this process that hears what must be heard at once, whatever else the process does: the control
// meshes. It drives no engine, so no user's function ever runs on it and delays the news.
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

// Something with a descriptor that is polled when it is readable, or due by time. poll() runs no function of a user and
// waits for nothing that one may hold up.
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
  // Lets the thread ask once more when each is due.
  void ring();

 private:
  Status start() TRESTLE_REQUIRES(start_mutex_);
  void loop();
  int64_t poll_all(int64_t now_ns);
  void sleep(int64_t timeout_ns);

  Mutex start_mutex_;
  bool started_ TRESTLE_GUARDED_BY(start_mutex_) = false;
  Mutex pollables_mutex_;  // held while they are polled
  std::vector<std::shared_ptr<Pollable>> pollables_ TRESTLE_GUARDED_BY(pollables_mutex_);
  std::atomic<bool> stop_{false};
  UniqueFd bell_;
  Thread thread_;
};

}  // namespace trestle
