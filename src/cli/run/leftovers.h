// Leftovers: processes that ranks have started and that have left their rank's process group (setsid). Signals to the
// group do not reach them.
//
// This process adopts them when their parents end (PR_SET_CHILD_SUBREAPER). They are its children then, and keep their
// process numbers until this process waits for them. Owned by the job, its only thread.
#pragma once

#include <sys/types.h>

namespace trestle {

class Leftovers {
 public:
  // Must be made before this process starts any other. If it has children by then (`exec trestle run` in a script with
  // a job in the background), it adopts what those leave behind as well. Then it never kills anything.
  Leftovers();
  // Sends SIGKILL to all children except `spared`. To be called once no rank runs. False: none is left, nor anything
  // that they have started.
  bool kill(pid_t spared) const;

 private:
  bool all_from_ranks_;
};

}  // namespace trestle
