// WorkQueue: takes work on data and does it later, in the order of submission: on a device's stream, on a thread, in
// simulated time. The host's own work needs none: the driving thread does it at once, without a virtual call.
//
// One queue per engine, which owns it and calls it under the progress lock: one caller at a time, from changing
// threads. Nothing here blocks but close(). Work may read memory of peers that a transport has handed out as a view: a
// peer of this process must not free it before its own close() has waited for the readers. One of another process never
// frees it (memory/outbox.h).
//
// Order: work may follow other work of the queue as soon as that was *submitted*. Everything else, such as a message
// that sends the result, must wait until the work is *done*.
#pragma once

#include "engine/work/work.h"

namespace trestle {

class WorkQueue {
 public:
  virtual ~WorkQueue() = default;

  // Takes the work. It must not move or die until it is done or close() has returned.
  virtual void submit(Work& work) = 0;
  // Sets the state of work that has ended to kDone. True if there was any.
  virtual bool poll() = 0;

  // Sleeping, as with Transport: event_fd() becomes readable when poll() might find something; -1: never needed.
  // prepare_sleep() returns false if there is something already.
  virtual int event_fd() const = 0;
  virtual bool prepare_sleep() = 0;
  virtual void finish_sleep() = 0;

  // Drops work that has not begun and waits for work that has, which may take as long as a user-defined function.
  // False: at `give_up_ns` (monotonic clock) it still ran. After true no memory is touched and nothing that was not
  // done will be. Idempotent.
  virtual bool close(int64_t give_up_ns) = 0;
};

}  // namespace trestle
