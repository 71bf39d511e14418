// Guard: a process that kills the ranks' process groups when this process has been killed.
//
// The kernel kills the ranks themselves (PR_SET_PDEATHSIG), but not what they have started, and a rank may be a script
// whose child does the work. The guard has a session of its own, holds nothing of the job open, and notices the end of
// this process by the end of a pipe. Owned by the job, its only thread.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

class Guard {
 public:
  static Result<Guard> start();
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  ~Guard();  // in order: nothing is killed

  int fd() const { return to_.get(); }
  pid_t pid() const { return pid_; }
  // From now on `group` is killed with this process; a negative one no longer is. Async-signal-safe.
  static bool tell(int fd, pid_t group);

 private:
  Guard(pid_t pid, UniqueFd to) : pid_(pid), to_(std::move(to)) {}
  pid_t pid_;
  UniqueFd to_;
};

}  // namespace trestle
