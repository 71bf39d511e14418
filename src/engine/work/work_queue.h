// WorkQueue: takes work on data and does it later: on a device's streams, on a thread, in simulated time. The host's
// own work needs none: the driving thread does it at once, without a virtual call.
//
// One queue per engine, which owns it and calls it under the progress lock: one caller at a time, from changing
// threads. Nothing here blocks but close(). Work may read memory of peers that a transport has handed out as a view: a
// peer of this process must not free it before its own close() has waited for the readers. One of another process never
// frees it (memory/outbox.h).
//
// Order: the memory is as if each work had been done before the next one was. So work may follow other work of the
// queue as soon as that was *submitted*. Everything else, such as a message that sends the result, must wait until the
// work is *done*. Works may end in any order, but for those whose memory is the same.
#pragma once

#include "engine/work/polled.h"
#include "engine/work/work.h"

namespace trestle {

class WorkQueue : public Polled {
 public:
  // Takes the work. It must not move or die until it is done or close() has returned. poll() sets the state of work
  // that has ended to kDone.
  virtual void submit(Work& work) = 0;
};

}  // namespace trestle
