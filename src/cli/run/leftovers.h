// Leftovers: the processes that ranks have started and that have left their rank's process group (setsid). Signals to
// the group do not reach them.
//
// This process adopts them when their parents end (PR_SET_CHILD_SUBREAPER): they are its children then, and their
// numbers are theirs until they are waited for here. Owned by the job, its only thread.
#pragma once

#include <sys/types.h>

namespace trestle {

class Leftovers {
 public:
  // To be made before this process starts any other. If it has children then (`exec trestle run` in a script with a job
  // in the background), whatever they leave behind comes here as well, and nothing is ever killed.
  Leftovers();
  // SIGKILL to all children but `spared`. Once no rank runs. False: none is left, nor anything that they have started.
  bool kill(pid_t spared) const;

 private:
  bool all_from_ranks_;
};

}  // namespace trestle
