// Polled: something that an engine looks at while it drives, because its end rings no bell by itself: queues of work,
// and the board of devices.
//
// Owned by the engine, called under its progress lock: one caller at a time, from changing threads. Nothing here blocks
// but close().
#pragma once

#include <cstdint>

namespace trestle {

class Polled {
 public:
  virtual ~Polled() = default;

  // At the beginning of each round. True if anything ended.
  virtual bool poll() = 0;

  // Sleeping, as with Transport: event_fd() becomes readable when poll() might find something; -1: never needed.
  // prepare_sleep() returns false if there is something already.
  virtual int event_fd() const = 0;
  virtual bool prepare_sleep() = 0;
  virtual void finish_sleep() = 0;

  // Drops what has not begun and waits for what has, which may take as long as a user-defined function. False: at
  // `give_up_ns` (monotonic clock) it still ran. After true no memory is touched and nothing that was not done will be.
  // Idempotent.
  virtual bool close(int64_t give_up_ns) = 0;
};

}  // namespace trestle
